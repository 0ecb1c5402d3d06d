"""Edits of a file that a time stamp does not show, and time stamps without an edit; on the real file system only."""

from __future__ import annotations

import mmap
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.helpers.files import TEXT

EDITED = TEXT.replace("line number 17", "LINE NUMBER 17")  # as long as before
Edit = Callable[[Path], Iterator[None]]  # up to the yield before the file is read, after it the edit


def shell(command: str, directory: Path) -> None:
    subprocess.run(["bash", "-ec", command], cwd=directory, check=True, capture_output=True)


def by_shell(command: str, before: str = "true") -> Edit:
    def edit(path: Path) -> Iterator[None]:
        (path.parent / "other").write_text(EDITED)
        shell(before, path.parent)
        yield
        shell(command, path.parent)

    return edit


def rewrite_with_its_time_restored(path: Path) -> Iterator[None]:
    yield
    before = path.stat()
    path.write_text(EDITED)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def rewrite_with_a_time_of_long_ago(path: Path) -> Iterator[None]:
    yield
    path.write_text(EDITED)
    os.utime(path, (0, 0))


def rewrite_through_a_hard_link(path: Path) -> Iterator[None]:
    os.link(path, path.with_name("link"))
    yield
    path.with_name("link").write_text(EDITED)


def unlink_and_create_with_the_inode_reused(path: Path) -> Iterator[None]:
    yield
    before = path.stat()
    for _ in range(100):  # ext4 gives the number away again at once; where that is not so this is one more edit
        path.unlink()
        path.write_text(EDITED)
        if path.stat().st_ino == before.st_ino:
            break
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def write_to_a_page_that_was_dirty(path: Path) -> Iterator[None]:
    at = EDITED.index("LINE")
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = memory[0:1]
        yield
        memory[at : at + 11] = b"LINE NUMBER"  # leaves no time, unless the page was written out meanwhile


def point_a_link_elsewhere(path: Path) -> Iterator[None]:
    path.rename(path.with_name("first"))
    path.with_name("second").write_text(EDITED)
    path.symlink_to("first")
    yield
    path.unlink()
    path.symlink_to("second")


GIT = "git init -q . && git config user.email a@b && git config user.name a && git add f && git commit -qm a"
ON_A_BRANCH = f"{GIT} && git checkout -qb edited && cp other f && git commit -qam b && git checkout -q -"
EDITS: dict[str, Edit] = {
    edit.__name__: edit
    for edit in (
        rewrite_with_its_time_restored,
        rewrite_with_a_time_of_long_ago,
        rewrite_through_a_hard_link,
        unlink_and_create_with_the_inode_reused,
        write_to_a_page_that_was_dirty,
        point_a_link_elsewhere,
    )
} | {
    "cp -p": by_shell("cp -p other f", before="touch -r f other"),
    "mv": by_shell("mv other f", before="touch -r f other"),
    "touch -r": by_shell("touch -r f stamp; cat other > f; touch -r stamp f"),
    "sed -i": by_shell("touch -r f stamp; sed -i 's/line number 17/LINE NUMBER 17/' f; touch -r stamp f"),
    "git checkout": by_shell("git checkout -q edited", before=ON_A_BRANCH),
    "git stash": by_shell("git stash pop -q", before=f"{GIT} && cp other f && git stash -q"),
}
NO_EDITS: dict[str, Edit] = {
    "touch": by_shell("touch f"),
    "touch -d": by_shell("touch -d '2001-01-01' f"),
    "chmod": by_shell("chmod 600 f"),
    "ln": by_shell("ln f link"),
    "cp": by_shell("cp f same; cp same f"),
    "mv of the same": by_shell("cp f same; mv same f"),
    "mv away and back": by_shell("mv f away; mv away f"),
    "sed -i without a match": by_shell("sed -i s/nothing-of-the-kind/x/ f"),
    "git checkout there and back": by_shell("git checkout -q edited; git checkout -q -", before=ON_A_BRANCH),
}
