"""The one error that people meet: what happened, to which file, what to do."""

from __future__ import annotations


class AbError(Exception):
    """A plan, a folder or a result that cannot be worked with. The text is for people."""
