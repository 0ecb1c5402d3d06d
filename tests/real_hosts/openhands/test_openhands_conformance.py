"""What an adapter owes, asked of OpenHands. Not with tmux: what that shows of a command differs from run to run."""

from __future__ import annotations

from readcache.testing.conformance import Conformance
from tests.real_hosts.openhands.openhands_host import OpenHandsHost


class TestCondenser(Conformance):
    host = OpenHandsHost()


class TestCondenserWithEverythingSwitchedOn(Conformance):
    host = OpenHandsHost(policy="max")
