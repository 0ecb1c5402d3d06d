"""Landmarks: find the texts that a command is known to print (`echo ---`). They are the borders between its reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from readcache.core.model.claims import Claim, Literal
from readcache.core.model.text import split_lines

# If the texts have more different first lines than this, they are not looked for at the ends of lines.
MOST_JOINED = 64
# Comparisons for each line of the output. After that, the remaining texts are skipped. In the recordings, no output
# needs more than two.
MOST_COMPARED = 100


@dataclass(frozen=True, slots=True)
class Landmark:
    """Output lines low to high - 1 that claim number `claim` printed.

    `joined`: True if the text before had no final newline, so that the first line begins with the end of that text.
    """

    claim: int
    low: int
    high: int
    joined: bool


def find_landmarks(claims: Sequence[Claim], lines: Sequence[str]) -> list[Landmark]:
    """Return the texts that occur at only one position that their order allows.

    The search from above and the search from below must find the same position. If a file contains such a line as well,
    the position is uncertain, and the text is not returned.
    """
    texts = {k: tuple(split_lines(c.text)) for k, c in enumerate(claims) if isinstance(c, Literal) and c.text.strip()}
    if not texts:
        return []
    positions = _positions(list(texts.values()), lines)
    first: dict[int, int] = {}
    at = 0
    for k, text in texts.items():
        next_position = bisect_left(positions[text], at)
        if next_position < len(positions[text]):
            first[k] = positions[text][next_position]
            at = first[k] + len(text)
    out: list[Landmark] = []
    end = len(lines)
    for k, text in reversed(texts.items()):
        last_position = bisect_left(positions[text], end - len(text) + 1) - 1
        if last_position >= 0:
            end = positions[text][last_position]
            if first.get(k) == end:
                out.append(Landmark(k, end, end + len(text), joined=lines[end] != text[0]))
    return out[::-1]


def _positions(texts: Sequence[tuple[str, ...]], lines: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    """Return, for each text, the indexes of the lines at which it begins, ascending.

    It may be lines of its own, or come after the end of a line that had no newline.
    """
    solid = {text: next(n for n, line in enumerate(text) if line.strip()) for text in texts}
    at: dict[str, list[int]] = {text[n]: [] for text, n in solid.items()}
    beginnings = tuple({text[0] for text, n in solid.items() if n == 0})
    joined: dict[str, list[int]] = {line: [] for line in beginnings}
    for k, line in enumerate(lines):
        if line in at:
            at[line].append(k)
        elif len(beginnings) <= MOST_JOINED and line.endswith(beginnings):
            for beginning in beginnings:
                if line.endswith(beginning):
                    joined[beginning].append(k)
    out: dict[tuple[str, ...], list[int]] = {}
    left = MOST_COMPARED * len(lines)
    for text, n in solid.items():
        starts = [k - n for k in at[text[n]] if k >= n] + (joined[text[0]] if n == 0 else [])
        left -= len(starts) * len(text)
        out[text] = sorted(k for k in starts if _ends_with(lines[k : k + len(text)], text)) if left >= 0 else []
    return out


def _ends_with(lines: Sequence[str], text: tuple[str, ...]) -> bool:
    return len(lines) == len(text) and lines[0].endswith(text[0]) and tuple(lines[1:]) == text[1:]
