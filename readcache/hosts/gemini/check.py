"""Check that no setting keeps Gemini CLI from running the readcache hook, and make events to try the hook with."""

from __future__ import annotations

import os
from typing import Any

from readcache.hosts.host import InstallTarget


def settings_file(target: InstallTarget) -> str:
    """Return the path of the project's or the user's settings file, which has the hooks."""
    home = target.environment.get("GEMINI_CLI_HOME") or target.home
    return os.path.join(home if target.is_user else target.root, ".gemini", "settings.json")


def nothing_forbids(target: InstallTarget) -> str:
    """Return a sentence that says no setting disables the hook. Raise ReadcacheError if the user's or the project's
    settings file does."""
    from readcache import ReadcacheError
    from readcache.hosts.settings_files.json_text import settings_in

    for is_user in (True, False):
        path = settings_file(target._replace(is_user=is_user))
        config = settings_in(path).get("hooksConfig", {})
        if config.get("enabled", True) is not True:
            raise ReadcacheError(f"{path} disables all hooks: remove hooksConfig.enabled from it")
        if "readcache" in config.get("disabled", ()):
            raise ReadcacheError(f"{path} disables the hook: remove readcache from hooksConfig.disabled")
    return "no setting switches it off" + ("" if target.is_user else "; it runs where the folder is trusted")


def trial_chat(directory: str) -> list[dict[str, Any]]:
    """Return the events of two reads of one file. The hook must shorten the second."""
    from readcache.hosts.checks import TEXT, two_reads

    def shown(name: str) -> list[dict[str, Any]]:
        part = {"functionResponse": {"id": name, "response": {"output": TEXT}}}
        return [{"id": name, "content": [part]}]

    event: dict[str, Any] = {
        "hook_event_name": "AfterTool",
        "tool_name": "read_file",
        "tool_input": {"file_path": "file"},
    }
    event["tool_response"] = {"llmContent": TEXT}
    return two_reads(directory, event, lambda name: [{"id": f"before {name}"}], shown)
