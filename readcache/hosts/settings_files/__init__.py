"""Settings files of a user's, changed so that nothing of theirs is lost."""
