"""The program that the scripts of a directory of shims start. It calls `run_shim`, or becomes the real tool on failure.

shims/tool.sh starts it as `python -I shim_entry.py DIR TOOL ARGS…`. Without arguments it prints "ready", as a check
that Python starts.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds to import, in which a Ctrl-C would print a traceback

if __name__ == "__main__" and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import contextlib
import os
import sys

if __name__ == "__main__":
    if sys.argv[1:] == []:
        print("ready", flush=True)
        os._exit(0)
    directory, tool, *args = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    try:
        import readcache  # noqa: F401  import this copy, even if another one is on the path

        sys.path.append(sys.path.pop(0))
        from readcache.cli.shim_run import run_shim

        end = run_shim(directory, tool, args)
    except Exception:  # readcache was removed, or there is no memory: do the work of `run_shim` without readcache
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        shell = os.environ.get("READCACHE_BASH") or "bash"
        words = [shell, "-c", args[1]] if tool == "readcache-run" else [tool, *args]
        os.execvp(words[0], words)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(end)  # a normal exit of the interpreter would take 7 ms
