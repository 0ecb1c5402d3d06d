"""pi: an extension that asks `readcache serve`."""
