"""What readcache saved, by time, host, tool and reason: records of a store in, totals out. Pure."""

DIMENSIONS = ("day", "host", "tool", "reason", "session")
