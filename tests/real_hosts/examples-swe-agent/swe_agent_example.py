"""A hook for SWE-agent: `agent.add_hook(ReadcacheHook("/repo"))`, e.g. in a script of your own around `RunSingle`."""

from typing import Any

from readcache import Session

try:
    from sweagent.agent.hooks.abstract import AbstractAgentHook
except ImportError:  # it is not on PyPI
    AbstractAgentHook = object


def frame(text: str) -> tuple[str, str, str]:
    """What swe-rex's terminal puts around an output."""
    head = "\r\n" if text.startswith("\r\n") else ""
    tail = "\r\n\r\n" if text.endswith("\r\n\r\n") and len(text) > 4 else ""
    return head, text[len(head) : len(text) - len(tail)], tail


class ReadcacheHook(AbstractAgentHook):  # type: ignore[misc]
    def __init__(self, root: str, **options: Any) -> None:
        self.session, self.cwd = Session(root, **options), root

    def on_action_executed(self, *, step: Any) -> None:
        if "SWE_AGENT_SUBMISSION" in step.observation or "###SWE-AGENT" in step.observation:
            return  # it is meant for SWE-agent itself
        observe, output = self.session.observe, step.observation
        step.observation = observe(step.action, output, exit_code=None, cwd=self.cwd, frame=frame).text

    def on_step_done(self, *, step: Any, **_: Any) -> None:
        self.cwd = step.state.get("working_dir") or self.cwd  # where the next command starts

    def on_model_query(self, *, messages: list[dict[str, Any]], **_: Any) -> None:
        # The list that the model is sent, behind the history processors.
        messages[:] = self.session.mend(messages)
