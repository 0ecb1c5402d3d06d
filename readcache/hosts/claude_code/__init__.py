"""Claude Code: a plugin, or hooks, that judge each result."""
