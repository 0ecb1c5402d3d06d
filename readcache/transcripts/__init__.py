"""One file for each format: what a transcript says, as `records`."""
