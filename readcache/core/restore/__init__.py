"""What to put back after a compaction. Pure."""
