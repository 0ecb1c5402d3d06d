"""Claude Code: hooks that are told each result."""
