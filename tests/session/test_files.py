"""`Session.files`: what of each file is visible, and whether the disk still has it."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

from readcache import Session, Sessions
from readcache.serve.protocol import Protocol

LINES = [f"line {n} of a file\n" for n in range(1, 61)]
TEXT = "".join(LINES)
HASH = hashlib.sha256(TEXT.encode()).hexdigest()


def test_a_whole_file_has_its_hash_and_the_disk_has_it(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(TEXT)
    with Session(tmp_path) as session:
        session.run("cat a.py", call_id="c1")
        (file,) = session.files()
        assert (file.path, file.ranges, file.call_id, file.hash) == (str(path), ((1, 60),), "c1", HASH)
        assert file.on_disk
        assert file.mtime == path.stat().st_mtime


def test_ranges_are_merged_and_have_no_hash(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    with Session(tmp_path) as session:
        session.run("sed -n 5,20p a.py", call_id="c1")
        session.run("nl -ba a.py | sed -n 15,30p", call_id="c2")
        (file,) = session.files()
        assert (file.ranges, file.call_id, file.hash, file.on_disk) == (((5, 30),), "c2", None, True)


def test_the_disk_has_other_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(TEXT)
    with Session(tmp_path) as session:
        session.read("a.py", call_id="c1")
        for changed in (TEXT.replace("line 7 ", "line x "), TEXT + "one more\n", "".join(LINES[:-1])):
            path.write_text(changed)
            assert [(file.hash, file.on_disk, file.mtime) for file in session.files()] == [(HASH, False, None)]
        path.write_text(TEXT)
        assert session.files()[0].on_disk
        path.unlink()
        assert not session.files()[0].on_disk


def test_a_written_file_is_listed_as_it_was_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(TEXT)
    with Session(tmp_path) as session:
        session.run("cat a.py", call_id="c1")
        session.run("sed -i 's/line 7 /line x /' a.py", call_id="c2")
        (file,) = session.files()
        assert (file.ranges, file.call_id, file.on_disk) == (((1, 60),), "c1", False)


def test_files_elsewhere_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    with Session(tmp_path, local=False) as session:
        session.observe("cat a.py", TEXT, call_id="c1")
        session.observe("git show HEAD:b.py", TEXT, call_id="c2")
        (file,) = session.files()
        assert (file.hash, file.on_disk, file.mtime) == (HASH, None, None)


def test_what_left_the_conversation_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    (tmp_path / ".env").write_text("KEY=1\n" * 60)
    with Session(tmp_path) as session:
        session.run("cat a.py; cat .env", call_id="c1")
        session.run("cat a.py", call_id="c2")
        session.compacted()
        assert session.files() == []


def test_serve_lists_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    with contextlib.closing(Protocol(Sessions(tmp_path, local=True))) as protocol:

        def ask(method: str, **params: Any) -> Any:
            answer = protocol.answer({"id": 1, "method": method, "params": {"conversation": "c", **params}})
            assert answer is not None
            return answer["result"]

        ask("observe", command="cat a.py", output=TEXT, call_id="c1")
        (file,) = ask("files")["files"]
        assert (file["ranges"], file["hash"], file["on_disk"]) == ([[1, 60]], HASH, True)
