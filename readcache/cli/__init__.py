"""The command line, `readcache …`."""
