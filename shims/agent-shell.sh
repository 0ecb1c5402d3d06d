# Sourced by the agent's own shell, once, before its command runs: by bash through BASH_ENV, in a profile, or with `.`.
# Writes down in READCACHE_SINK which shell this is and what its stdout is, as "PID mnt_id:N ino:N [at:TIME] KIND SHELL",
# with the time at which it began where bash tells that, and lets it find the shims: bash alone, and no child of it, by `hash -p`; any other shell, and its children, by PATH.
# KIND: `command` for a shell that was given one command, `shell` for one that stays. No process is started for this.
{
  readcache_kind=command readcache_fd= readcache_served= readcache_dot= readcache_env= readcache_again= readcache_kept=
  # The agent's own shell may have become another bash (`exec bash -c …`): that has its id and what it wrote down.
  case ${BASH_VERSION+${READCACHE_SINK-}} in "$$ "*" command bash")
    while IFS=':	' read -r readcache_name readcache_value; do
      case $readcache_name in mnt_id | ino) readcache_fd="$readcache_fd$readcache_name:$readcache_value " ;; esac
    done </proc/self/fdinfo/1
    case $READCACHE_SINK in "$$ $readcache_fd"*)
      readcache_again=${READCACHE_SINK#"$$ $readcache_fd"}
      readcache_again="again ${readcache_again%command bash}"
      unset READCACHE_SINK ;;
    esac
    readcache_fd= ;;
  esac
  case $- in *[is]*) readcache_kind=shell ;; *)
    # When bash looks at BASH_ENV, it does not say yet that it is going to read stdin; its name does.
    if [ "${BASH_VERSION-}" ] && [ -z "${BASH_EXECUTION_STRING-}" ] && [ "${0##*[-/]}" = "${BASH##*/}" ]; then
      readcache_kind=shell
    fi ;;
  esac
  # A script is not the agent's own command. What a harness parses (Policy.never) is left alone, generously: bash may
  # become the last program of its command, and then nobody can ask it for that any more.
  # (The whole-command way knows the command, and looks closer.)
  case $readcache_kind${BASH_VERSION+" ${BASH_EXECUTION_STRING-}"} in
    'command ') readcache_kind= ;;
    *submit* | *SUBMIT* | *SUBMISSION* | *FINAL_OUTPUT*)
      if [ "${readcache_whole-}" ]; then readcache_whole=parsed; else readcache_kind=; fi ;;
  esac

  # Who had this file read. `env`: BASH_ENV, which every bash has that anybody starts. `login`: a start-up file, which
  # is also read by a shell with an environment of its own (`env -i`, `su -`). Else this very shell was told to.
  readcache_from= readcache_value=
  if [ "${BASH_VERSION-}" ]; then
    case $- in *i*) ;; *) case ${BASH_ENV-} in */agent-shell.sh | */agent-command.sh) readcache_from=env ;; esac ;; esac
    eval 'case ${BASH_SOURCE[@]: -1} in */agent-*.sh) ;; *) readcache_from=login ;; esac'
  else
    read -r readcache_value <"/proc/$$/cmdline" || :
    case $readcache_value in -* | *sh-l* | *sh--l* | *sh-[!c]l*) readcache_from=login ;; esac
  fi

  # The BASH_ENV that was there before this one is read as bash would, and is what the children have.
  case $readcache_from${BASH_ENV-} in */agent-shell.sh | */agent-command.sh)
    case $readcache_from${BASH_EXECUTION_STRING-} in
      env*exec\ *sh*\ -c\ *) readcache_kept=$BASH_ENV readcache_value=${READCACHE_BASH_ENV-} ;;
    esac
    unset BASH_ENV
    if [ "${READCACHE_BASH_ENV-}" ]; then
      export BASH_ENV="$READCACHE_BASH_ENV"
      if [ "$readcache_from" = env ]; then # after a start-up file bash reads it by itself
        eval "IFS= read -r -d '' readcache_env <<READCACHE_END || :
$BASH_ENV
READCACHE_END"
        readcache_env=${readcache_env%?}
        case $readcache_env in */*) ;; *) readcache_env=./$readcache_env ;; esac
        if [ -f "$readcache_env" ] || [ -p "$readcache_env" ]; then readcache_dot=.; fi
      fi
    fi
    unset READCACHE_BASH_ENV
    # The bash that this one is going to become has to read this file too.
    [ -z "$readcache_kept" ] || export BASH_ENV="$readcache_kept"
    [ -z "$readcache_kept" ] || [ -z "$readcache_value" ] || export READCACHE_BASH_ENV="$readcache_value" ;;
  esac

  # It may have been read by a shell that the agent's command started, and that prints into a file or to a program. So a
  # harness must have started this one: no shell, and nothing that starts shells for others. Further up may be the shell
  # in which somebody started the harness, if it did not have these variables from its beginning; or, of a start-up
  # file, which needs no variables, none at all. And a harness holds the other end of the pipe.
  readcache_pid= readcache_near=yes
  [ "${READCACHE_SESSION-}${READCACHE_SESSION_FROM-}" ] && [ -z "${READCACHE_SINK-}${READCACHE_INSIDE-}" ] || readcache_kind=
  if [ "$readcache_from" ] && [ "$readcache_kind" ]; then readcache_pid=$PPID; fi
  while [ "${readcache_pid#0}" ]; do
    readcache_next= readcache_who= readcache_had=
    while IFS=':	' read -r readcache_name readcache_value; do
      case $readcache_name in
        Name) readcache_who=$readcache_value ;;
        PPid) readcache_next=$readcache_value && break ;;
      esac
    done <"/proc/$readcache_pid/status" || :
    case $readcache_who in
      *sh | busybox) readcache_who=shell ;;
      timeout | sudo | su | doas | runuser | setsid | unshare | nsenter | bwrap | strace | ltrace | flock | time)
        readcache_who=between ;;
      '' | *make | ninja | xargs | find | parallel | git | script | watch | *awk | sed | tar | vi | vim | nvim)
        readcache_who=starter ;;
      *) # a script has a name of its own
        for readcache_name in "${BASH-}" /bin/sh /bin/bash /bin/dash /bin/zsh; do
          if [ "/proc/$readcache_pid/exe" -ef "$readcache_name" ]; then readcache_who=shell; fi
        done ;;
    esac
    if [ "$readcache_from$readcache_who" = envshell ]; then
      read -r -N 100000 readcache_value <"/proc/$readcache_pid/environ" || :
      case $readcache_value in *READCACHE_SESSION=* | *READCACHE_SESSION_FROM=*) readcache_had=yes ;; esac
    fi
    case $readcache_near-$readcache_from-$readcache_who in
      *-login-shell | yes-*-starter) readcache_kind= ;;
      yes-env-shell) # somebody at a terminal: what goes there goes into no file
        { [ -t 1 ] && [ "/proc/$readcache_pid/fd/1" -ef /proc/self/fd/1 ]; } || readcache_kind= ;;
      yes-*-shell | *-between | -*) ;;
      *) if [ -p /proc/self/fd/1 ] && [ -r "/proc/$readcache_pid/fd" ]; then
          readcache_value=
          for readcache_name in "/proc/$readcache_pid/fd"/*; do
            if [ "$readcache_name" -ef /proc/self/fd/1 ]; then readcache_value=holds && break; fi
          done
          [ "$readcache_value" ] || readcache_kind=
        fi ;;
    esac
    # Of a process that has ended meanwhile (`setsid -f`) nothing of this need have been true: its parent is 0 by then.
    read -r readcache_value <"/proc/$readcache_pid/stat" || readcache_value=
    case "${readcache_value##*) }" in [!ZX]*) ;; *) readcache_kind= ;; esac
    [ "$readcache_who" = between ] || readcache_near=
    [ -z "$readcache_had" ] || readcache_kind=
    readcache_pid=${readcache_kind:+$readcache_next}
  done

  if [ "${READCACHE_SESSION-}${READCACHE_SESSION_FROM-}" ] && [ -z "${READCACHE_SINK-}${READCACHE_INSIDE-}" ]; then
    # What goes into a file goes on to somebody else.
    if [ "$readcache_kind" ] && { [ -p /proc/self/fd/1 ] || [ -S /proc/self/fd/1 ] || [ -t 1 ]; }; then
      while IFS=':	' read -r readcache_name readcache_value; do
        case $readcache_name in mnt_id | ino) readcache_fd="$readcache_fd$readcache_name:$readcache_value " ;; esac
      done </proc/self/fdinfo/1
    fi
    export READCACHE_SINK=none # below a shell that is not served none is
    case $readcache_fd${BASH_VERSION+bash} in
      *ino:*bash)
        READCACHE_SINK="$$ $readcache_fd$readcache_again${EPOCHREALTIME+at:$EPOCHREALTIME }$readcache_kind bash"
        readcache_served=yes
        for readcache_name in @TOOLS@; do
          hash -p @DIR@/"$readcache_name" "$readcache_name"
        done ;;
      *ino:*) export READCACHE_SINK="$$ $readcache_fd$readcache_kind sh" PATH=@DIR@:"$PATH" ;;
    esac
  fi
  if [ "${readcache_whole-}" ]; then readcache_later=$readcache_dot readcache_dot=
  else unset readcache_served readcache_kept; fi
  unset readcache_kind readcache_fd readcache_from readcache_name readcache_value readcache_who readcache_had \
    readcache_pid readcache_next readcache_near readcache_again
} 2>/dev/null
${readcache_dot-} ${readcache_dot:+"$readcache_env"}
{ unset readcache_dot; [ "${readcache_whole-}" ] || unset readcache_env; } 2>/dev/null
