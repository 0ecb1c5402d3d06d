"""A hook for SWE-agent: `agent.add_hook(ReadcacheHook("/repo"))`, e.g. in a script of your own around `RunSingle`."""

from typing import Any

from readcache import Session

try:
    from sweagent.agent.hooks.abstract import AbstractAgentHook
except ImportError:  # it is not on PyPI
    AbstractAgentHook = object


def frame(text: str) -> tuple[str, str, str]:
    """Return the output, and the blank lines that swe-rex's terminal puts before and after it."""
    head = "\r\n" if text.startswith("\r\n") else ""
    tail = "\r\n\r\n" if text.endswith("\r\n\r\n") and len(text) > 4 else ""
    return head, text[len(head) : len(text) - len(tail)], tail


class ReadcacheHook(AbstractAgentHook):  # type: ignore[misc]
    def __init__(self, root: str, **options: Any) -> None:
        self.session, self.cwd = Session(root, **options), root

    def on_action_executed(self, *, step: Any) -> None:
        if "SWE_AGENT_SUBMISSION" in step.observation or "###SWE-AGENT" in step.observation:
            return  # only SWE-agent itself reads it
        observe, output = self.session.observe, step.observation
        step.observation = observe(step.action, output, exit_code=None, cwd=self.cwd, frame=frame).text

    def on_step_done(self, *, step: Any, **_: Any) -> None:
        self.cwd = step.state.get("working_dir") or self.cwd  # where the next command starts

    def on_model_query(self, *, messages: list[dict[str, Any]], **_: Any) -> None:
        # the list for the model, after the history processors
        messages[:] = self.session.mend(messages)
