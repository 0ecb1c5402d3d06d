"""The ground: events, what is visible, text and names. Pure."""
