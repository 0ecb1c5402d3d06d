"""How the parts of the parser say no to one another."""

from __future__ import annotations


class Refused(Exception):
    """Bash would refuse this, or it is beyond us. Never leaves `parse`."""
