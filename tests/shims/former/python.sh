# Sourced where readcache's Python is about to take the place of a tool or of bash. `readcache_python` is empty unless it
# is sure to start: what could keep it from that is as it was when the shims were installed; or else it is asked first,
# which takes as long as a read. This file has the time stamp of that Python.
readcache_python=@PYTHON@ readcache_entry=@ENTRY@ readcache_imports=@IMPORTS@
if [ -x "$readcache_python" ] && [ -r "$readcache_entry" ] && [ -r @LIBRARY@ ]; then
  # Where memory is limited there may be enough for the tool, and not for Python.
  case $(ulimit -v; ulimit -d) in *[0-9]*) readcache_python= ;; *)
    readcache_word=ready
    case ${LD_LIBRARY_PATH-}:${LD_PRELOAD-}:${LD_AUDIT-}:${GLIBC_TUNABLES-} in @LOADER@) ;; *) readcache_word= ;; esac
    if [ "$readcache_python" -nt @DIR@/python.sh ] || [ "$readcache_python" -ot @DIR@/python.sh ]; then
      readcache_word=
    fi
    if [ -z "$readcache_word" ]; then
      { readcache_word=$(
        LD_BIND_NOW=1 "$readcache_python" -ISE "$readcache_entry" "$readcache_imports" 2>&1 </dev/null
      ); } 2>/dev/null || :
    fi
    [ "$readcache_word" = ready ] || readcache_python= ;;
  esac
else
  readcache_python=
fi
