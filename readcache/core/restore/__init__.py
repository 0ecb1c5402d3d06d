"""Restore plans: the lines to show again after a compaction. Pure."""
