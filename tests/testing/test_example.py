"""A test of a harness, without processes and real files."""

from pathlib import Path

from pyfakefs.fake_filesystem import FakeFilesystem

from readcache import Reason, Session
from readcache.testing import assert_omitted, assert_shown, reconstruct

SHOP = "".join(f"item_{n} = Item('number {n}', price={n}.99)\n" for n in range(1, 41))


def test_the_agent_is_shown_a_file_once(readcache_session: Session) -> None:
    outputs = {"cat shop.py": SHOP, "pytest -q": "1 failed, 3 passed\n"}  # in place of bash
    tool = readcache_session.wrap(outputs.__getitem__)  # give this to your harness
    assert tool("cat shop.py") == SHOP
    assert tool("pytest -q") == outputs["pytest -q"]
    assert readcache_session.markers_in(tool("cat shop.py"))


def test_the_agent_is_shown_what_it_edited(fs: FakeFilesystem, readcache_session: Session) -> None:
    fs.create_file("/repo/shop.py", contents=SHOP)
    first = readcache_session.read("/repo/shop.py", call_id="call_1")
    again = readcache_session.read("/repo/shop.py", start=8, end=30, call_id="call_2")
    assert_omitted(again, "shop.py", lines=(8, 30), source="call_1", reason=Reason.COVERED)
    assert reconstruct(again, {"call_1": first.text}) == again.full_text
    Path("/repo/shop.py").write_text(SHOP.replace(".99", ".49"))
    readcache_session.wrote("/repo/shop.py")
    assert_shown(readcache_session.read("/repo/shop.py", start=8, end=30), reason=Reason.WRITTEN)
