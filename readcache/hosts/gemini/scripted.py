"""Gemini CLI with a scripted model: generateContent."""

from __future__ import annotations

import json

from readcache.hosts.scripted import Scripted, stream

_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
}


def _answer(path: str, _: int, command: str) -> str:
    call = {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}
    parts = [call] if command else [{"text": "done"}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}
    answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}
    return stream([answer]) if "stream" in path else json.dumps(answer)


SCRIPTED = Scripted(
    ("gemini", "--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", "go on"),
    lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none", "GEMINI_CLI_NO_RELAUNCH": "1"},
    lambda _: {".gemini/settings.json": json.dumps(_SETTINGS)},
    '"functionResponse"',
    _answer,
)
