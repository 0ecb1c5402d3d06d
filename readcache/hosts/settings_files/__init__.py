"""Changes a user's settings files without losing anything of theirs."""
