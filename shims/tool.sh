#!/bin/sh
# A readcache shim. Under the name of a tool (cat, sed, …) it becomes the real tool of that name, arguments untouched,
# unless two things hold: the agent's own shell called it, and what it prints is what the agent reads. That shell wrote
# itself and its stdout down in READCACHE_SINK before the command ran (agent-shell.sh). Then readcache runs the real
# tool and judges its output. No program is started to find that out. Under the name of `readcache-run` it runs a whole
# command: `-c` as a harness says it, `--shell` as agent-command.sh does. `readcache shims install` fills in the rest.
{ set +x; } 2>/dev/null # where sh is bash, and the agent has exported SHELLOPTS

readcache_tool=${0##*/} readcache_met= readcache_serves=
if [ "$readcache_tool" = readcache-run ]; then
  case $#${1-} in 2-c | 2--shell) readcache_serves=yes ;; *)
    echo "readcache: usage: readcache-run -c COMMAND" >&2
    exit 2 ;;
  esac
else
  # The real tool: the first on PATH that is in no directory of shims, and not this file. The directories of shims
  # before it are left out of PATH, so that it is found by its plain name, as without shims. The system's own are last:
  # for a caller that knew the way here and has another PATH, and for programs that call each other in a circle.
  case ${READCACHE_DEPTH=} in ++++++++*) PATH= ;; esac
  for readcache_rest in "${PATH:+$PATH:}" /usr/local/bin:/usr/bin:/bin:; do
    readcache_path=
    while [ "$readcache_rest" ]; do
      readcache_dir=${readcache_rest%%:*}
      readcache_file=${readcache_dir:-.}/$readcache_tool
      if ! [ -x "$readcache_file" ] || ! [ -f "$readcache_file" ]; then
        readcache_path=$readcache_path$readcache_dir:
      elif ! [ -e "${readcache_dir:-.}/.readcache-shims" ] && ! [ "$readcache_file" -ef "$0" ]; then
        break 2
      else
        readcache_met=yes
      fi
      readcache_rest=${readcache_rest#*:}
    done
  done
  if [ -z "$readcache_rest" ]; then
    echo "readcache: there is no $readcache_tool on PATH but shims: install it, or add its directory to PATH" >&2
    exit 127
  fi
  readcache_path=$readcache_path$readcache_rest
  export PATH="${readcache_path%:}" READCACHE_DEPTH="$READCACHE_DEPTH+"

  case ${READCACHE_SINK-} in "$PPID "* | "$$ "*)
    # In a pipeline fd 1 is not what the shell has there now: seen at once, before fd 1 is looked at more closely.
    if [ /proc/self/fd/1 -ef "/proc/${READCACHE_SINK%% *}/fd/1" ] && [ "${READCACHE-}" != off ]; then
      readcache_fd=
      while IFS=':	' read -r readcache_name readcache_value; do
        case $readcache_name in mnt_id | ino) readcache_fd="$readcache_fd$readcache_name:$readcache_value " ;; esac
      done 2>/dev/null </proc/self/fdinfo/1
      readcache_files=
      for readcache_word; do [ -f "$readcache_word" ] && readcache_files=yes; done
      # The shell itself may have become the tool (`exec cat f`); or a script in its place, if shims are on PATH.
      case $readcache_files$READCACHE_SINK in
      "yes$PPID ${readcache_fd:-?}"* | "yes$$ ${readcache_fd:-?}"*bash$readcache_met) readcache_serves=yes ;;
      esac
    fi ;;
  esac
fi

# Python takes the tool's place where it is sure to start: it is asked first. Where something is limited it does not,
# since there may be enough memory for the tool alone.
readcache_python=@PYTHON@ readcache_entry=@ENTRY@
if [ "$readcache_serves" ] && [ -x "$readcache_python" ] && [ -r "$readcache_entry" ]; then
  case $(ulimit -v; ulimit -d; ulimit -f) in *[0-9]*) ;; *)
    { readcache_word=$(LD_BIND_NOW=1 "$readcache_python" -I "$readcache_entry" 2>&1 </dev/null); } 2>/dev/null || :
    [ "$readcache_word" != ready ] || exec "$readcache_python" -I "$readcache_entry" @DIR@ "$readcache_tool" "$@" ;;
  esac
fi
[ "$readcache_tool" = readcache-run ] || exec "$readcache_tool" "$@"
exec "${READCACHE_BASH:-bash}" -c "$2"
