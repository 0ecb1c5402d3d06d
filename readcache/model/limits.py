"""Limits of what holds an output, sends it and judges it."""

from __future__ import annotations

# Bytes while an output is held, characters when it is judged. To split and compare a larger one would cost more than
# the command that printed it.
LARGEST_OUTPUT = 8_000_000
# Lines. More of them, each a few characters long, would take longer than half a second to compare.
MOST_LINES = 100_000
