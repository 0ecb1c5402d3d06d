"""pi with a scripted model."""

from __future__ import annotations

import json

from readcache.hosts.scripted import Scripted, chat_answer


def _files(url: str) -> dict[str, str]:
    limits = {"id": "model", "contextWindow": 100_000, "maxTokens": 8000}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [limits]}
    return {".pi/agent/models.json": json.dumps({"providers": {"scripted": provider}})}


SCRIPTED = Scripted(
    ("pi", "-p", "--provider", "scripted", "--model", "model", "go on"),
    lambda _: {"PI_OFFLINE": "1"},
    _files,
    '"tool_call_id"',
    chat_answer,
)
