# Sourced by the agent's own shell, once, before its command runs: by bash through BASH_ENV, in a profile, or with `.`.
# Writes down in READCACHE_SINK which shell this is and what its stdout is, as "PID mnt_id:N ino:N KIND SHELL", and
# lets it find the shims: bash alone, and no child of it, by `hash -p`; any other shell, and its children, by PATH.
# KIND: `command` for a shell that was given one command, `shell` for one that stays. No process is started for this.
{
  readcache_kind=command readcache_fd=
  case $- in *[is]*) readcache_kind=shell ;; *)
    # When bash looks at BASH_ENV, it does not say yet that it is going to read stdin; its name does.
    if [ "${BASH_VERSION-}" ] && [ -z "${BASH_EXECUTION_STRING-}" ] && [ "${0##*[-/]}" = "${BASH##*/}" ]; then
      readcache_kind=shell
    fi ;;
  esac
  # A script is not the agent's own command. What a harness parses (Policy.never) is left alone, generously: bash may
  # become the last program of its command, and then nobody can ask it for that any more.
  case $readcache_kind${BASH_VERSION+" ${BASH_EXECUTION_STRING-}"} in
    'command ' | *submit* | *SUBMIT* | *SUBMISSION* | *FINAL_OUTPUT*) readcache_kind= ;;
  esac
  # A start-up file is also read by a shell that the agent's command starts with an environment of its own (`env -i`,
  # `su -`), and that prints anywhere: from there only a shell is taken for the harness's that no other shell is above.
  if [ "${BASH_VERSION-}" ]; then
    eval 'case ${BASH_SOURCE[@]: -1} in */agent-*.sh) ;; *) readcache_value=- ;; esac'
  else
    read -r readcache_value <"/proc/$$/cmdline" || :
  fi
  readcache_pid=
  case ${readcache_value-} in -* | *sh-l* | *sh--l* | *sh-[!c]l*) readcache_pid=$PPID ;; esac
  while [ "${readcache_pid#0}" ]; do
    readcache_next=
    while IFS=':	' read -r readcache_name readcache_value; do
      case $readcache_name:$readcache_value in
        Name:*sh) readcache_kind= ;;
        PPid:*) readcache_next=$readcache_value ;;
      esac
    done <"/proc/$readcache_pid/status"
    readcache_pid=$readcache_next
  done
  if [ "${READCACHE_SESSION-}" ] && [ -z "${READCACHE_SINK-}${READCACHE_INSIDE-}" ]; then
    if [ "$readcache_kind" ] && ! [ /proc/self/fd/1 -ef /dev/null ]; then
      while IFS=':	' read -r readcache_name readcache_value; do
        case $readcache_name in mnt_id | ino) readcache_fd="$readcache_fd$readcache_name:$readcache_value " ;; esac
      done </proc/self/fdinfo/1
    fi
    export READCACHE_SINK=none # below a shell that is not served none is
    case $readcache_fd${BASH_VERSION+bash} in
      *ino:*bash)
        READCACHE_SINK="$$ $readcache_fd$readcache_kind bash"
        for readcache_name in @TOOLS@; do
          hash -p @DIR@/"$readcache_name" "$readcache_name"
        done
        case ${BASH_ENV-} in @DIR@/agent-*.sh) unset BASH_ENV ;; esac ;;
      *ino:*) export READCACHE_SINK="$$ $readcache_fd$readcache_kind sh" PATH=@DIR@:"$PATH" ;;
    esac
  fi
  unset readcache_kind readcache_fd readcache_name readcache_value readcache_pid readcache_next
} 2>/dev/null
