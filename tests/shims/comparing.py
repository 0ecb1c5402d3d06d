"""What must be the same with and without shims."""

from __future__ import annotations

import re

from readcache.judging import marker
from tests.shims.conftest import LINES, Ran, Sandbox
from tests.shims.shapes import BASH_SHAPES, CUT, CUT_WITH_STDERR, SHAPES

_SAME = rb", same bytes as [^\r\n]*\](\r?\n)"
_MARKER = rb"\[(?:FILE_)?UNCHANGED [0-9a-f]+: "
_OF_FILE = re.compile(_MARKER + rb"(?:(?:\S*/)?f lines? ([\d, -]+)|this output, 60 lines)" + _SAME)
_OF_OUTPUT = re.compile(_MARKER + rb"lines (\d+)-(\d+) of this output(?: \(f\))?" + _SAME)


def filled(out: bytes, real: bytes) -> bytes:
    """`out` with the lines of `f`, the only file that was shown, in the place of each marker. Of a read that is the
    whole command, a marker may count the lines of `real`, the output."""

    def of_file(found: re.Match[bytes]) -> bytes:
        ranges = [span.split(b"-") for span in (found[1] or b"1-60").replace(b" ", b"").split(b",")]
        chosen = (LINES.splitlines()[int(span[0]) - 1 : int(span[-1])] for span in ranges)
        return b"".join(line.encode() + found[2] for part in chosen for line in part)

    def of_output(found: re.Match[bytes]) -> bytes:
        return b"".join(real.splitlines(keepends=True)[int(found[1]) - 1 : int(found[2])])

    return _OF_OUTPUT.sub(of_output, _OF_FILE.sub(of_file, out))


def assert_same(with_shims: Ran, without: Ran) -> None:
    """The agent's view as well, as the text that it is, once what was left out stands in it again."""
    assert filled(with_shims.out, without.out).decode(errors="replace") == without.out.decode(errors="replace")
    assert (with_shims.err, with_shims.status) == (without.err, without.status)
    assert with_shims.files == without.files
    tag = marker.tag("s").encode()
    assert not [name for name, data in with_shims.files.items() if b"UNCHANGED " + tag in data]


def compare_bash(sandbox: Sandbox, shape: str, stdout: str) -> None:
    """`bash -c` with BASH_ENV, and without."""
    words = ["bash", "-c", SHAPES.get(shape) or BASH_SHAPES[shape]]
    with_shims = sandbox.run(words, sandbox.by_bash_env(), stdout)
    assert_same(with_shims, sandbox.run(words, sandbox.env(), stdout))
    cut = CUT_WITH_STDERR if stdout in ("merged", "pty") else CUT
    assert (b"UNCHANGED " in with_shims.out) == (shape in cut)
