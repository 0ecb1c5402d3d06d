"""pi with its extension owes what every adapter owes: the suite, with the real program."""

from __future__ import annotations

from readcache.testing.conformance import Conformance
from tests.real_hosts.pi.host import PiHost


class TestPi(Conformance):
    host = PiHost()
