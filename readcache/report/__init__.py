"""What readcache did, for people: totals over time, and a session as a page."""

DIMENSIONS = ("day", "host", "tool", "reason", "session")  # of the rows of `readcache gain`
