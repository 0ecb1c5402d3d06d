"""`readcache serve`: the methods of a session as lines of JSON."""
