"""Mutants of the package's edges: of what is not judging, log, sync and the view."""

from tests.mutants.guarded.doors import ADAPTERS, SERVER, TRANSCRIPTS
from tests.mutants.guarded.messages import CONTEXT, MESSAGES
from tests.mutants.guarded.restore import PROTECT, RESTORE
from tests.mutants.guarded.shell import SHELL

MUTANTS = (*SHELL, *RESTORE, *PROTECT, *MESSAGES, *CONTEXT, *TRANSCRIPTS, *ADAPTERS, *SERVER)
