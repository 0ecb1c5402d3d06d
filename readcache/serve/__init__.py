"""`readcache serve`: the methods of a session, called with lines of JSON."""
