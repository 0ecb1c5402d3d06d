"""opencode: a plugin that asks `readcache serve`."""
