#!/bin/sh
# sh install.sh DIR [--tools NAME…]: `readcache shims install` with whichever Python here has readcache, or a word on
# what to do in a sandbox without one.
path='import sys; sys.path = sys.path[1:] if sys.path[0] == "" else sys.path'
for python in python3 python python3.13 python3.12 python3.11 python3.10; do
  # Without the working directory: what lies there under the name of a module is somebody else's.
  "$python" -c "$path; import readcache.cli.main; sys.exit(sys.version_info < (3, 10))" 2>/dev/null || continue
  exec "$python" -c "$path; from readcache.cli.main import main; sys.exit(main(['shims', 'install', *sys.argv[1:]]))" "$@"
done
echo "readcache: no Python 3.10 or newer with readcache is on PATH here: install it with pip; or say" \
  "'readcache shims install DIR --compile --static' on the host and mount DIR here at the same path; or wrap the tool of" \
  "the sandbox on the host with Session.observe" >&2
exit 1
