"""Start the command line: `python -m readcache`, or `python -I …/site-packages/readcache` in hosts' settings."""

from __future__ import annotations

import sys

if not __package__:  # started by the directory's path, which is the first on sys.path
    import os

    _packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _is_known = _packages in sys.path
    sys.path[0] = _packages
    import readcache  # noqa: F401  this package, even if another one is installed

    sys.path.append(sys.path.pop(0))  # last, so that nothing there replaces a module of Python
    if not _is_known:  # -I ignores the user's packages, and readcache may be one of them
        import site

        site.addsitedir(site.getusersitepackages())

from readcache.cli.start import start_command_line

sys.exit(start_command_line())
