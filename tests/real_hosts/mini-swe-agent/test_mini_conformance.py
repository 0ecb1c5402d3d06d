"""What an adapter owes, asked of both classes and of each kind of model class that mini has."""

from __future__ import annotations

from pathlib import Path

import pytest
from mini_host import MiniHost

from readcache.testing.conformance import Conformance


class TestModelClass(Conformance):
    host = MiniHost()


class TestModelClassWithEverythingSwitchedOn(Conformance):
    host = MiniHost(policy="max")


class TestModelClassAroundTextBased(Conformance):
    host = MiniHost("litellm_textbased")

    @pytest.mark.skip("it takes one command a message")
    def test_calls_made_at_once_do_not_point_at_each_other(self, tmp_path: Path) -> None:
        pass


class TestModelClassAroundResponses(Conformance):
    host = MiniHost("litellm_response")


class TestModelClassWithObservationsInJson(Conformance):
    host = MiniHost(config="mini.yaml")


class TestEnvironmentClass(Conformance):
    host = MiniHost(wrapped="environment", config="swebench.yaml")
