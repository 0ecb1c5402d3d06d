"""Mutants of everything but judging, log, sync and the view. Each names the tests that it dies by."""

from tests.laws.mutants.guarded.adapters import ADAPTERS
from tests.laws.mutants.guarded.context import CONTEXT
from tests.laws.mutants.guarded.messages import MESSAGES
from tests.laws.mutants.guarded.protect import PROTECT
from tests.laws.mutants.guarded.restore import RESTORE
from tests.laws.mutants.guarded.server import SERVER
from tests.laws.mutants.guarded.shell import SHELL
from tests.laws.mutants.guarded.transcripts import TRANSCRIPTS

MUTANTS = (*SHELL, *RESTORE, *PROTECT, *MESSAGES, *CONTEXT, *TRANSCRIPTS, *ADAPTERS, *SERVER)
