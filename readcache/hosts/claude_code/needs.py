"""Find the texts that must be in the conversation for a reply's markers to be true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readcache import Reply, Session
from readcache.core.model.events import Delivered, Origin
from readcache.core.model.spec.lines import is_same_line
from readcache.transcripts.claude_code import bare

Need = tuple[str, str]  # a call ("" for a restored section), and a text that it must show
_MOST = 100  # spans of one omission; each is searched for in all of its sources


def needs_of(reply: Reply, session: Session) -> list[Need]:
    """Return (call, text) for each span that the markers replace: consecutive whole lines, as that call shows them.

    The call is "" for a restored section, which has no ID. A restored section is needed as a whole. So is a source in
    which the lines are not found.
    """
    found = dict[Need, None]()
    for omitted, _, lines in reply.omissions():
        sources = [delivery.event for name in omitted.sources for delivery in session.view.of_call(name)]
        sections = [delivered for delivered in sources if delivered.origin is Origin.RESTORED]
        spans = [] if sections else _matching_spans(lines, sources)
        found.update(
            dict.fromkeys(
                spans or [("" if delivered in sections else delivered.call_id, delivered.text) for delivered in sources]
            )
        )
    return list(found)


def _matching_spans(lines: Sequence[str], sources: Sequence[Delivered]) -> list[Need]:
    """Return spans of the sources that together are the lines. Empty if the lines are not found, or need too many
    spans."""
    found, texts = list[Need](), [_Source(delivered) for delivered in sources]
    while lines and len(found) < _MOST:
        pairs = [(source.longest_match(lines), source.name) for source in texts]
        longest, name = max(pairs, key=lambda pair: len(pair[0]), default=([], ""))
        if not longest:
            return []
        found.append((name, "\n".join(longest)))
        lines = lines[len(longest) :]
    return [] if lines else found


class _Source:
    """The text that one delivery shows, split into lines."""

    def __init__(self, delivered: Delivered) -> None:
        self.name, self._lines = delivered.call_id, delivered.text.split("\n")
        self._forms = [_joined(self._lines), _joined(map(bare, self._lines))]

    def longest_match(self, wanted: Sequence[str]) -> list[str]:
        """Return the longest run of its lines that equals the first of the wanted lines. The line numbers before the
        lines may differ."""
        found = (
            self._first(form, lines) for form, lines in zip(self._forms, (wanted, [*map(bare, wanted)]), strict=True)
        )
        return max((match for match in found if all(map(is_same_line, wanted, match))), key=len, default=[])

    def _first(self, form: str, wanted: Sequence[str]) -> list[str]:
        fits, over = 0, len(wanted) + 1  # lines; a binary search, as each start of an occurring text occurs
        while over - fits > 1:
            middle = (fits + over) // 2 if over <= len(wanted) else len(wanted)
            fits, over = (middle, over) if _joined(wanted[:middle]) in form else (fits, middle)
        at = form.count("\n", 0, form.find(_joined(wanted[:fits])))
        return self._lines[at : at + fits] if fits else []


def _joined(lines: Sequence[str] | Iterator[str]) -> str:
    return "\n".join(["", *lines, ""])
