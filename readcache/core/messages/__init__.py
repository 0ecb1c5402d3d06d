"""Message lists of any API, read and changed. Pure."""
