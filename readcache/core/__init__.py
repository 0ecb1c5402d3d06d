"""The rules of readcache, pure: claims, views, omissions, restore plans and repairs.

Nothing here reads a file, runs a command, or asks for the time. Users import the public names from `readcache`, not
from this package.
"""
