"""What a word of the source becomes as an argument, as far as that is known before the command runs.

Apart from `arguments`, so that who has a real argv (a PATH shim) need not import the syntax of words.
"""

from __future__ import annotations

from collections.abc import Mapping

from readcache.shell.arguments import Arg
from readcache.shell.syntax import Variable, Word, WordText, has_glob, literal


def arg_of(word: Word, variables: Mapping[str, str], cwd: str | None) -> Arg:
    """The argument that `word` becomes. `$HOME` and `$PWD` are known as paths only."""
    text = literal(word, variables)
    places = {"HOME": "~", "PWD": cwd} if cwd else {"HOME": "~"}
    path = text if text is not None else literal(word, {**places, **variables})
    first = word.parts[0] if word.parts else WordText("")
    tilde = isinstance(first, Variable) or (isinstance(first, WordText) and not first.quoted)
    if path is not None and path.startswith("~") and not tilde:
        path = "./" + path
    if text is not None and text.startswith("~") and tilde:
        text = None
    return Arg(text, path, has_glob(word))
