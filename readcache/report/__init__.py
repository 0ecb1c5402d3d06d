"""What readcache did, for people: totals over time, and a session as a page."""
