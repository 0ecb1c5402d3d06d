"""What every page has around its contents. It loads nothing, and runs only our own script, whatever text it shows."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from readcache.report.page.markup import escaped

# Each page begins with this: a file that does may be overwritten.
BEGINNING = "<!doctype html>\n<!-- made by `readcache "


def whole_page(
    command: str,
    title: str,
    about: Mapping[str, str],
    main: Iterable[str],
    footer: str,
    *,
    links: str = "",
    skip: str = "",
    script: str = "",
) -> Iterator[str]:
    """The page in parts. `command`: the command of readcache that makes it. `about`: facts for its head. `main`,
    `footer`, `links` (to its parts) and `skip` (past its head): as HTML. `script`: the name of its file."""
    style, code = _data("page.css"), _data(script) if script else ""
    rules = (
        f"default-src 'none'; style-src '{_hash(style)}'; style-src-attr 'unsafe-inline'; "
        f"script-src '{_hash(code) if code else 'none'}'; base-uri 'none'; form-action 'none'"
    )
    yield f"{BEGINNING}{command}` -->\n"
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
    yield f"<title>{escaped(title)} · readcache</title>\n<style>{style}</style>\n</head>\n<body>\n{skip}"
    yield f'<header><p class="by">readcache {command}</p><h1>{escaped(title)}</h1>\n<p class="about">'
    yield " ".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in about.items())
    yield f"</p>\n{links}</header>\n<main>\n"
    yield from main
    yield f"</main>\n<footer><p>{footer}</p></footer>\n"
    yield f"<script>{code}</script>\n" if code else ""
    yield "</body>\n</html>\n"


def _data(name: str) -> str:
    return files("readcache.report.page").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
