"""Runs the blocks of an experiment, several at once if that is wanted, and sees to it that all stop together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from .experiment import Conduct
from .plan import Block

MOST_TROUBLED = 3  # blocks in a row that cannot be finished: a key or a server is wrong then, and no instance


def run_blocks(conduct: Conduct, workers: int, tell: Callable[[str], None]) -> str:
    """Runs what is missing. The reason why it stopped; "" when nothing is missing."""
    crew = _Crew(conduct, tell)
    if workers == 1:
        crew.work()
    else:
        with ThreadPoolExecutor(workers) as pool:
            hands = [pool.submit(crew.work) for _ in range(workers)]
            try:
                for hand in hands:
                    hand.result()
            except BaseException:
                crew.reason = crew.reason or "interrupted"
                conduct.is_interrupted = True
                raise  # when the runs under way are over
    missing = [run for block in conduct.experiment.blocks for run in block.runs() if run not in conduct.done]
    if missing and not crew.reason:
        return f"{len(missing)} runs failed; run again for one more try"
    if crew.reason.startswith("budget: ") or not missing:
        conduct.note("finished" if not missing else "stopped", crew.reason)
    return crew.reason if missing else ""


class _Crew:
    def __init__(self, conduct: Conduct, tell: Callable[[str], None]) -> None:
        self._conduct, self._tell, self._lock = conduct, tell, threading.Lock()
        self.reason = ""
        self._troubled = 0
        self._left: Iterator[tuple[int, Block]] = iter(enumerate(conduct.experiment.blocks, 1))

    def work(self) -> None:
        """Takes one block after the other until none is left or a reason to stop is there."""
        while True:
            with self._lock:
                number, block = next(self._left, (0, None)) if not self.reason else (0, None)
            if block is None:
                return
            if all(run in self._conduct.done for run in block.runs()):
                continue
            trouble = self._conduct.block(block)
            with self._lock:
                self._note(number, block, trouble)

    def _note(self, number: int, block: Block, trouble: str) -> None:
        spent = self._conduct.budget.spent
        whole = len(self._conduct.experiment.blocks)
        self._tell(f"{number}/{whole} {block.instance}: {trouble or 'done'} ({spent.money:,.2f} spent)")
        self._troubled = self._troubled + 1 if trouble else 0
        if trouble.startswith("budget: "):
            self.reason = self.reason or trouble
        elif self._troubled >= MOST_TROUBLED:
            self.reason = self.reason or f"{MOST_TROUBLED} blocks in a row could not be finished: {trouble}"
