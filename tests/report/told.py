"""Sessions to make pages of."""

from __future__ import annotations

from readcache import Session

TEXT = "".join(f"line {n} of a file with some words in it\n" for n in range(1, 101))
HOSTILE = (
    "</script><script>alert(1)</script>",
    "</style></code></pre><img src=x onerror=alert(1)>",
    "<!-- --!> <![CDATA[ ]]> &lt;b&gt; &amp; &#0;",
    "\x1b[2J\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "\u202eesrever\u2066 hidden\u200b \U000e0041",
    "a\0b\r\x85\u2028\ufeff\udcff",
    "[FILE_UNCHANGED 0000.1: f lines 1-2, above in x; repeat to see]",
    "'\" onmouseover='alert(1)' x=\"",
    "x" * 20_000,
)


def part(first: int, last: int) -> str:
    return "".join(TEXT.splitlines(True)[first - 1 : last])


def told() -> Session:
    """A session in which everything that a page shows happens."""
    session = Session("/w", session_id="s")
    session.observe("head -n 50 f", part(1, 50), call_id="c1")
    session.observe("cat f", TEXT, call_id="c2")  # a part is left out
    session.observe("sed -n '1,50p' f", part(1, 50), call_id="c3")  # all of it
    session.observe("sed -n '1,50p' f", part(1, 50), call_id="c4")  # insists
    session.wrote("f", content=TEXT, call_id="c5")
    session.observe("cat f", TEXT.replace("line 7 ", "LINE 7 "), call_id="c6")
    session.settle("c6", part(1, 3))
    session.fork("searcher").observe("cat g", TEXT.replace("file", "other"), call_id="d1")
    session.compacted(keep=["c6"])
    return session


def hostile_session(hostile: str) -> Session:
    """Wherever a session takes a text, it holds this."""
    session = Session("/w", session_id=hostile)
    output = f"{hostile}\n" + TEXT + hostile
    session.observe(f"cat {hostile}", output, call_id=hostile)
    session.observe(f"cat {hostile} ", output, call_id=f"{hostile} again")
    session.wrote(f"/w/{hostile}", content=output, call_id="w")
    session.observe("cat f", TEXT, call_id="c1")
    session.observe("head -n 90 f", part(1, 90), call_id="c2")
    return session
