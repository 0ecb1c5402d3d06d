"""The HTML pages of `readcache report`, `readcache gain` and `readcache replay`."""
