"""Replay recorded conversations: find what readcache would have omitted, what that saves, and wrong omissions.

Builds only on the public names of the package, its model and its transcripts, which anybody can use. Of the other
folders, only the command line builds on it.
"""
