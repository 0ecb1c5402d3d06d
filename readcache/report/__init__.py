"""Reports for people: totals over time, a session as a page, and replays of recorded conversations."""

DIMENSIONS = ("day", "host", "tool", "reason", "session")  # of the rows of `readcache gain`
