"""Runs the blocks of an experiment, several at once if that is wanted, and sees to it that all stop together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from .experiment import BUDGET, Conduct
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
    if crew.reason.startswith(BUDGET) or not missing:
        conduct.note("finished" if not missing else "stopped", crew.reason)
    return crew.reason if missing else ""


class _Crew:
    def __init__(self, conduct: Conduct, tell: Callable[[str], None]) -> None:
        self._conduct, self._tell, self._lock = conduct, tell, threading.Lock()
        self.reason = ""
        self._troubled = self._at_work = 0
        self._left = deque(enumerate(conduct.experiment.blocks, 1))

    def work(self) -> None:
        """Takes one block after the other until none is left or a reason to stop is there."""
        with self._lock:
            self._at_work += 1
        while True:
            with self._lock:
                if self.reason or not self._left:
                    self._at_work -= 1
                    return
                number, block = self._left.popleft()
            if all(run in self._conduct.done for run in block.runs()):
                continue
            trouble = self._conduct.block(block)
            with self._lock:
                if trouble.startswith(BUDGET) and self._at_work > 1:
                    # What the others set aside they may not use: this one ends, and the last one says whether it fits.
                    self._left.appendleft((number, block))
                    self._at_work -= 1
                    return
                self._note(number, block, trouble)

    def _note(self, number: int, block: Block, trouble: str) -> None:
        spent = self._conduct.budget.spent
        whole = len(self._conduct.experiment.blocks)
        self._tell(f"{number}/{whole} {block.instance}: {trouble or 'done'} ({spent.money:,.2f} spent)")
        self._troubled = self._troubled + 1 if trouble else 0
        if trouble.startswith(BUDGET):
            self.reason = self.reason or trouble
        elif self._troubled >= MOST_TROUBLED:
            self.reason = self.reason or f"{MOST_TROUBLED} blocks in a row could not be finished: {trouble}"
