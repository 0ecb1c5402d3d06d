"""Names of files for a narrow column: cut in the middle, and no two alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

MOST = 34  # characters; a name that needs more to differ from all others has more
LEAST_HEAD = 6  # characters before the cut
SHARED = 0.9  # of the files: a directory that holds more is left out of their names


def home_of(keys: Sequence[str]) -> str:
    """The directory that nearly all files of these are in, with a slash behind it; "" for none."""
    home, keys = "", [key for key in keys if key.startswith("/")]
    while True:
        inside = [key[len(home) :] for key in keys if key.startswith(home)]
        below = Counter(rest.partition("/")[0] for rest in inside if "/" in rest)
        name, count = max(below.items(), key=lambda item: item[1], default=("", 0))
        if count <= SHARED * len(keys) or len(keys) < 2:
            return home if home != "/" else ""
        home += name + "/"


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """The name of each key."""
    home = home_of(keys)
    names = {key: key.removeprefix(home) for key in keys}
    if len({*names.values()}) < len(names):
        names = {key: key for key in keys}
    short, most = {key: cut(name, MOST) for key, name in names.items()}, MOST
    while alike := {name for name, count in Counter(short.values()).items() if count > 1}:
        most += 1
        short |= {key: cut(names[key], most) for key, name in short.items() if name in alike}
    return short


def cut(name: str, most: int) -> str:
    """At most so many characters: its beginning and its end, which has the file's own name if there is room."""
    if len(name) <= most:
        return name
    file_name = len(name.rpartition("/")[2])
    head = min(max(LEAST_HEAD, most - 2 - file_name), most // 2)
    return f"{name[:head]}…{name[head + 1 - most :]}"
