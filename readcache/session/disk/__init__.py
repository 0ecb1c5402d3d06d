"""Files, and running bash. Effects."""
