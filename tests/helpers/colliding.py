"""Two texts of one length and one xxh3_128, as anybody can make them who wants to be taken for somebody else.

In two stripes of one block, two words of eight bytes are chosen so that their lower halves, mixed with the hash's
public secret, are the same; what is added to the upper half of one and taken from that of the other leaves no trace.
"""

from __future__ import annotations

import xxhash

_LINES = [f"setting_{n:02} = 'a value'" for n in range(44)]


def _text(first: str, second: str) -> str:
    lines = list(_LINES)
    lines[1], lines[4] = f"setting_0baaa{first}...alue'", f"sett+BWR{second}... 'a value'"
    return "\n".join(lines) + "\n"


ONE, OTHER = _text("1", "3"), _text("3", "1")
assert ONE != OTHER
assert xxhash.xxh3_128_digest(ONE.encode()) == xxhash.xxh3_128_digest(OTHER.encode())
