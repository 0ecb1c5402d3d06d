#!/bin/sh
# `readcache-run` where no server is to be asked: Python does it, as `readcache run` does, or bash by itself.
# $1: `-c` as a harness says it, `--shell` as agent-command.sh does. $2: the command. `readcache shims install` fills in what
# follows.
. @DIR@/python.sh
case $1 in -c) set -- -- "$2" ;; *) set -- - "$2" ;; esac
if [ "$readcache_python" ]; then
  exec "$readcache_python" -ISE "$readcache_entry" "$readcache_imports" "$@"
fi
exec "${READCACHE_BASH:-bash}" -c "$2"
