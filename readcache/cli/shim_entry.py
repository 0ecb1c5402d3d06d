"""What a PATH shim starts: makes ready for `run`, and becomes the real tool when that cannot do its work.

Started by the scripts in shims/ alone, as `python -ISE entry.py IMPORTS TOOL ARGS…`; or `- COMMAND`, the whole-command
way; or `-- COMMAND`, as `readcache run -c COMMAND`. With IMPORTS alone it says whether it can do its work. IMPORTS are
the directories to import from, joined by ":", since `-S` leaves site-packages out. Python compiles this file at each
start, so that all else is in `run`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds to import, in which a Ctrl-C would print a traceback

if __name__ == "__main__" and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import contextlib
import gc
import os
import resource
import sys

if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
    sys.dont_write_bytecode = True  # Python takes a file that was cut at the limit for a whole one, ever after

if __name__ == "__main__":
    gc.disable()  # this process lives for some 50 ms, and collecting would take one or two of them
    imports, *words = sys.argv[1:]
    sys.path += imports.split(":")
    if not words:  # asked by python.sh: whatever is printed but this word means no
        print("ready", flush=True)
        os._exit(0)
    tool, *args = words
    try:
        from readcache.cli.shim_run import stand_in

        end = stand_in(tool, args)
    except Exception:  # readcache was taken away, there is no memory: what `stand_in` would do must do without it
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        words = ["bash", "-c", args[0]] if tool in ("-", "--") else [tool, *args]
        os.execvp(words[0], words)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(end)  # taking the interpreter down would take 7 ms
