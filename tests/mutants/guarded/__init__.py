"""Mutants of everything but judging, log, sync and the view. Each names the tests that it dies by."""

from tests.mutants.guarded.adapters import ADAPTERS
from tests.mutants.guarded.context import CONTEXT
from tests.mutants.guarded.messages import MESSAGES
from tests.mutants.guarded.protect import PROTECT
from tests.mutants.guarded.restore import RESTORE
from tests.mutants.guarded.server import SERVER
from tests.mutants.guarded.shell import SHELL
from tests.mutants.guarded.transcripts import TRANSCRIPTS

MUTANTS = (*SHELL, *RESTORE, *PROTECT, *MESSAGES, *CONTEXT, *TRANSCRIPTS, *ADAPTERS, *SERVER)
