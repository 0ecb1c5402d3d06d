"""Edit a user's settings files without losing anything that the user wrote."""
