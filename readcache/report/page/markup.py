"""Text as HTML. What an agent saw is hostile: it may hold markup, and characters that hide or turn what is read."""

from __future__ import annotations

import html

from readcache.model.policy import CHARS_PER_TOKEN

_PLAIN = "\n\t\u200d"  # the last joins the parts of an emoji and shows nothing by itself


def escaped(text: str) -> str:
    """The text between tags or in quoted attributes, every character of it visible and none of it markup. One without
    a shape becomes its number: `\\x1b`, `\\u202e`."""
    return _shown(html.escape(text), "", "")


def marked_up(text: str) -> str:
    """As `escaped`, between tags alone: what stands for a character without a shape is set apart from a text that
    merely looks like it."""
    return _shown(html.escape(text, quote=False), "<b>", "</b>")


def _shown(text: str, begin: str, end: str) -> str:
    odd = [c for c in set(text) if not c.isprintable() and c not in _PLAIN]
    return text.translate({ord(c): f"{begin}{_number_of(c)}{end}" for c in odd}) if odd else text


def _number_of(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def attributes(**values: str | int | bool | None) -> str:
    """` name="value"` of each; nothing for None and False. An underscore in a name stands for a hyphen, and at its end
    for nothing."""
    parts = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        parts.append(f" {name}" if value is True else f' {name}="{escaped(str(value))}"')
    return "".join(parts)


def number(value: int) -> str:
    """`12,345`, with a minus that is as wide as a digit."""
    return f"{value:,}".replace("-", "−")


def brief(value: int) -> str:
    """`12k`: at most four characters, for columns."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if abs(value) >= size:
            short = value / size
            return (f"{short:.1f}" if abs(short) < 9.95 else f"{short:.0f}").replace("-", "−") + unit
    return number(value)


def plural(value: int, one: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number(value)} {one if value == 1 else one + 's'}"


def tokens(chars: int) -> int:
    """As an estimate: the log has characters."""
    return chars // CHARS_PER_TOKEN
