"""Random settings files of each kind, with the comments, styles and line ends that people write."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

KEYS = st.sampled_from(["a", "b", "hooks", "x-y", "with space", "é", "model", "list"])
WORDS = st.sampled_from(
    ["", "plain", "with // no comment", "é → ü", "a # b", "{", '"quoted"', "tab\there", "back\\slash"]
)
SCALARS = st.one_of(WORDS, st.integers(-9, 9999), st.booleans(), st.none())
BLANKS = st.sampled_from(["", " ", "  ", "\n", "\n  ", " /* c */ ", " // c, [ {\n", "\n\t"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=4)


@st.composite
def jsonc_texts(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """(a file of JSON with comments, its value)"""
    value = draw(MAPPINGS)
    text = draw(BLANKS) + _jsonc(draw, value) + draw(BLANKS)
    return _line_ends(draw, text), value


def _jsonc(draw: st.DrawFn, value: Any) -> str:
    if not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    parts = []
    for inner in value:
        key = f"{json.dumps(inner)}{draw(BLANKS)}:{draw(BLANKS)}" if isinstance(value, dict) else ""
        parts.append(
            draw(BLANKS) + key + _jsonc(draw, value[inner] if isinstance(value, dict) else inner) + draw(BLANKS)
        )
    has_comma: bool = draw(st.booleans())
    inside = ",".join(parts) + ("," + draw(BLANKS) if parts and has_comma else "")
    inside = inside or draw(BLANKS)
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


def _line_ends(draw: st.DrawFn, text: str) -> str:
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text
