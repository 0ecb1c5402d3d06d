"""The look at a command that costs next to nothing: most commands read and write no file, and need no more than this.

Imports only the table of what is harmless, so that `readcache run` can get out of the way of such a command at once.
"""

from __future__ import annotations

import re

from readcache.shell.harmless import only_reads

# Parsing pays when one of these may be in the command. A name inside a string costs a parse, nothing else.
_INTERESTING = re.compile(
    r"<|>(?!&[\d-]|\s*/dev/null)|(?<![\w-])(?:"
    r"cat|nl|head|tail|g?sed|[ef]?grep|rg|sort|tee|cp|mv|ln|rm|dd|show|eval|source|xargs|--output"
    r")(?![\w-])"
)
_NO_PIPE = re.compile(r"\d?>&[\d-]|&?\d?>\s*/dev/null")
# The first words of each command, wherever one may begin.
_HEAD = re.compile(
    r"(?:\A|[;&|\n(){}`!])[ \t]*(?:[A-Za-z_]\w*=[^\s;&|()<>`$'\"]*[ \t]+)*"
    r"([^\s;&|(){}<>`!]+)((?:[ \t]+[^\s;&|(){}<>`!]+)*)"
)


def may_matter(command: str) -> bool:
    """True if `command` may read or write a file in a way that the parser understands, or that nobody does."""
    if _INTERESTING.search(command) is not None:
        return True
    return any(
        not only_reads(found[1].rpartition("/")[2], tuple(found[2].split()))
        for found in _HEAD.finditer(_NO_PIPE.sub("", command))
    )
