"""Read files, and run bash. Not pure."""
