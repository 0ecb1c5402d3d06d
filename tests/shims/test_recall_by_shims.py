"""`readcache recall` as a whole command: the server or the script answers, also where there is no `readcache`."""

from __future__ import annotations

import pytest

from readcache.core.model.text import session_tag
from tests.shims.sandbox import LINES, Sandbox, start


@pytest.mark.parametrize("way", ["readcache-run", "BASH_ENV"])
def test_a_recall_is_answered_for_this_reader_only(sandbox: Sandbox, way: str) -> None:
    def run(command: str, **more: str) -> str:
        env = sandbox.readcache(**more)
        words = [str(sandbox.shims / "readcache-run"), "-c", command]
        if way == "BASH_ENV":
            env["BASH_ENV"], words = str(sandbox.shims / "agent-command.sh"), ["bash", "-c", command]
        return start(words, env, "merged", sandbox.directory).out.decode()

    sandbox.reset()
    recall = f"readcache recall {session_tag('s')}.1"
    assert run(recall).endswith(LINES)
    assert run(f"{recall} 2-3").endswith("".join(LINES.splitlines(keepends=True)[1:3]))
    assert "no call" in run(recall, READCACHE_AGENT="sub")
    assert "command not found" in run(f"{recall} | cat")
    assert "command not found" in run(recall, READCACHE="off")
