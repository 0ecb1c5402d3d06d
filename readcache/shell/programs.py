"""What one program prints and writes: the tables of writers and readers, and Python."""

from __future__ import annotations

from readcache.shell.arguments import Call, CannotTell, text_arg
from readcache.shell.python_source import python_effect
from readcache.shell.readers import READERS
from readcache.shell.streams import ANYTHING
from readcache.shell.wrappers import is_python
from readcache.shell.writers import WRITERS, Effect


def program_effect(call: Call) -> Effect:
    """What running `call` does. Raises CannotTell."""
    if is_python(call.name):
        return _python(call)
    write = WRITERS.get(call.name)
    effect = write(call) if write is not None else None
    if effect is not None:
        return effect
    reader = READERS.get(call.name)
    return Effect(ANYTHING if reader is None else reader(call))


def _python(call: Call) -> Effect:
    """`python -c SOURCE`, `python - <<EOF`."""
    args = list(call.args)
    while args and args[0].text in ("-u", "-B", "-I", "-s", "-E"):
        args.pop(0)
    if len(args) > 1 and args[0].text == "-c":
        source = args[1].known
    elif call.stdin.body is not None and (not args or args[0].text == "-"):
        source = call.stdin.body
    else:
        raise CannotTell
    return Effect(*python_effect(source, lambda path: call.key(text_arg(path))))
