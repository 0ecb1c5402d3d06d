"""What a shell command reads and writes, from its text alone. Pure."""
