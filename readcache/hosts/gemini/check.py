"""Whether a setting keeps Gemini CLI from running our hook; and events to try the hook with."""

from __future__ import annotations

import json
import os
from typing import Any

from readcache.hosts.host import Where


def settings_file(where: Where) -> str:
    """The file with the hooks, of the project or the user."""
    home = where.environment.get("GEMINI_CLI_HOME") or where.home
    return os.path.join(home if where.is_user else where.root, ".gemini", "settings.json")


def nothing_forbids(where: Where) -> str:
    """Looks at both settings files. ReadcacheError."""
    from readcache import ReadcacheError
    from readcache.hosts.settings_files.json_text import JsonText

    for is_user in (True, False):
        path = settings_file(where._replace(is_user=is_user))
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                config = JsonText(file.read()).value.get("hooksConfig", {})
            if config.get("enabled", True) is not True:
                raise ReadcacheError(f"{path} disables all hooks: remove hooksConfig.enabled from it")
            if "readcache" in config.get("disabled", ()):
                raise ReadcacheError(f"{path} disables the hook: remove readcache from hooksConfig.disabled")
    return "no setting switches it off" + ("" if where.is_user else "; it runs where the folder is trusted")


def trial_chat(place: str) -> list[dict[str, Any]]:
    """Two reads of one file, and a chat's file for each as it is then; the second read is answered."""
    text = "".join(f"line {number} of a file that is read twice\n" for number in range(40))
    events = list[dict[str, Any]]()
    entries: list[dict[str, Any]] = [{"id": "1", "content": "read it twice"}]
    for name in ("one", "two"):
        path = os.path.join(place, f"{name}.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        events.append(
            {
                "session_id": "trial",
                "transcript_path": path,
                "cwd": place,
                "hook_event_name": "AfterTool",
                "tool_name": "read_file",
                "tool_input": {"file_path": "file"},
                "tool_response": {"llmContent": text},
            }
        )
        shown: dict[str, Any] = {"functionResponse": {"id": name, "response": {"output": text}}}
        entries.append({"id": "2", "content": [shown]})
    return events
