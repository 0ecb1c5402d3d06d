"""Gemini CLI: a hook after its shell and read tools."""
