"""Replay recorded conversations: find what readcache would have omitted, what that saves, and wrong omissions.

Builds only on the public names of the package, its model and its transcripts, which anybody can use. Only the command
line and the page of `replay` build on it.
"""
