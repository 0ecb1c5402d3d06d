"""Recorded conversations, replayed: what would have been left out, what that saves, and whether it was right.

Builds on the public names of this package alone, as a user would; no other room builds on it but the command line.
"""
