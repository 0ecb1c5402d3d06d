"""`python -m readcache`."""

from __future__ import annotations

import sys

from readcache.cli.main import main

sys.exit(main())
