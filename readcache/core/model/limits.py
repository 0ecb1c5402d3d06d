"""Limits of what holds an output, sends it and judges it."""

from __future__ import annotations

# Bytes while an output is held, characters when it is judged. To split and compare a larger one would cost more than
# the command that printed it.
LARGEST_OUTPUT = 8_000_000
# Lines. More of them, each a few characters long, would take longer than half a second to compare.
MOST_LINES = 100_000
MOST_COUNT = 1_000_000_000  # tokens, characters or seconds that an option may name: more is a slip


def whole_number(text: str) -> int | None:
    """Return the number that `text` is in decimal digits; None for any other text, and above `MOST_COUNT`."""
    number = text.strip()
    if not (number.isascii() and number.isdecimal() and len(number.lstrip("0")) <= len(str(MOST_COUNT))):
        return None
    return int(number) if int(number) <= MOST_COUNT else None
