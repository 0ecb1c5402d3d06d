"""The rules, pure: what a call printed, what a reader can see, what is omitted, restored and repaired.

Nothing here reads a file, runs a command, or asks for the time. Users do not import it: the public names are those of
`readcache`.
"""
