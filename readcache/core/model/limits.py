"""Limits for buffering, sending and judging an output."""

from __future__ import annotations

# Bytes while an output is buffered, characters when it is judged. Splitting and comparing a larger output would take
# longer than the command that printed it.
LARGEST_OUTPUT = 8_000_000
# Lines. More lines, each a few characters long, would take longer than half a second to compare.
MOST_LINES = 100_000
MOST_COUNT = 1_000_000_000  # tokens, characters or seconds in an option: a larger number is a typing error


def whole_number(text: str) -> int | None:
    """Return the number that `text` spells in decimal digits. Return None for any other text, and above
    `MOST_COUNT`."""
    number = text.strip()
    if not (number.isascii() and number.isdecimal() and len(number.lstrip("0")) <= len(str(MOST_COUNT))):
        return None
    return int(number) if int(number) <= MOST_COUNT else None
