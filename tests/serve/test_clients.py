"""Clients of `readcache serve`: the one that plugins have, and one in C, which keeps the suite free of Node's ways."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from readcache.testing.clients import ClientConformance
from tests.helpers.files import WATCHDOG

HERE = Path(__file__).parent / "clients"
CLIENT = HERE.parents[2] / "readcache/serve/client.js"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.slow  # waits for servers that hang, die and are late
class TestNode(ClientConformance):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _driver(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        parts = CLIENT, HERE / "driver.mjs"
        script = tmp_path_factory.mktemp("node") / "driver.mjs"
        script.write_text("".join(part.read_text(encoding="utf-8") for part in parts), encoding="utf-8")
        cls.driver = ("node", str(script))

    def test_a_server_that_hangs_for_long_is_replaced(self, tmp_path: Path) -> None:
        script = tmp_path / "aside.mjs"
        script.write_text(f"""
{CLIENT.read_text(encoding="utf-8")}
const command = ["bash", "-c", `echo x >> {tmp_path}/started; sleep 60`]
const server = new ReadcacheServer(command, {{ deadline: 200, aside: 500 }})
const fails = async () => server.ask("stats", {{ conversation: "c" }}, {{}}).then(() => false, () => true)
const began = Date.now()
while (Date.now() - began < 5000) if (!(await fails())) throw new Error("it was answered")
else await new Promise((soon) => setTimeout(soon, 50))
server.end()
""")
        subprocess.run(["node", script], check=True, timeout=WATCHDOG)
        assert (tmp_path / "started").read_text().split() == ["x"] * 3


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.slow  # the same
class TestC(ClientConformance):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _driver(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        program = tmp_path_factory.mktemp("c") / "client"
        subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-o", program, HERE / "client.c"], check=True)
        cls.driver = (str(program),)
