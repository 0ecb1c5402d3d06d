"""The files that a program is given to write: operands and values of options, as keys."""

from __future__ import annotations

from collections.abc import Iterable

from readcache.shell.arguments import Arg, Program, text_arg


def operands_of(args: Iterable[Arg]) -> list[Arg]:
    """Everything that does not look like an option."""
    out: list[Arg] = []
    only_operands = False
    for arg in args:
        if arg.text == "--" and not only_operands:
            only_operands = True
        elif only_operands or not (arg.text or "").startswith("-"):
            out.append(arg)
    return out


def keys_of(program: Program, args: Iterable[Arg]) -> tuple[str, ...]:
    """What is written where these are the files; patterns where a part of a name is not known."""
    return tuple(dict.fromkeys(key for key in map(program.target, args) if key is not None))


def without(args: Iterable[Arg], *names: str) -> tuple[list[Arg], Arg | None]:
    """The arguments without the options `names` and their values, and the last of these values."""
    rest: list[Arg] = []
    values: list[Arg] = []
    option = False
    for arg in args:
        if option:
            values.append(arg)
        elif arg.text not in names:
            rest.append(arg)
        option = not option and arg.text in names
    return rest, values[-1] if values else None


def value_of(args: Iterable[Arg], *names: str) -> Arg | None:
    """The last value of one of the options, given as `-o f`, `-of`, `-sSo f`, `--output f` or `--output=f`; the short
    one comes first."""
    found: Arg | None = None
    awaits = False
    for arg in args:
        text = arg.text or ""
        if awaits:
            found, awaits = arg, False
        elif text in names:
            awaits = True
        elif text.startswith("--"):
            name, equals, value = text.partition("=")
            found = text_arg(value) if equals and name in names else found
        elif text.startswith("-") and (letter := names[0][1]) in text:
            before, _, value = text[1:].partition(letter)
            if before.isalpha() or not before:
                found, awaits = (text_arg(value), False) if value else (found, True)
    return found
