"""`python -m readcache`."""

from __future__ import annotations

import sys

from readcache.cli.start import start_command_line

sys.exit(start_command_line())
