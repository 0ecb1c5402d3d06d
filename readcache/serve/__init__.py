"""`readcache serve`: the methods of a session by JSON-RPC."""
