"""Handle one call in a process of its own: its environment, the state directory, a child's buffered output."""
