"""Codex CLI: a hook after each command."""
