"""`python -m readcache`, and `python -I …/site-packages/readcache`, as the settings of hosts have it."""

from __future__ import annotations

import sys

if not __package__:  # started by the directory's path, which is the first on sys.path
    import os

    _packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    _is_known = _packages in sys.path
    sys.path[0] = _packages
    import readcache  # noqa: F401  this one, wherever another one may be

    sys.path.append(sys.path.pop(0))  # last: nothing there replaces a module of Python's own
    if not _is_known:  # -I leaves out the user's packages, among which readcache may have been installed
        import site

        site.addsitedir(site.getusersitepackages())

from readcache.cli.start import start_command_line

sys.exit(start_command_line())
