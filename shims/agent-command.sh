# For BASH_ENV: the whole-command way. The agent's `bash -c COMMAND` becomes `readcache run -c COMMAND`, which parses
# it, so that a pipeline such as `nl -ba f | sed -n '10,20p'` is understood too. Only where nothing but the command was
# given to bash, no options and no arguments, since they would be lost; the per-tool way serves all other shells, and
# what agent-shell.sh does not take for the agent's own shell is none here.
{
  readcache_whole=yes
  . @DIR@/agent-shell.sh
  # READCACHE_BASH: this is the bash that readcache became in the end.
  if [ "$readcache_served" ] && [ -z "${READCACHE_BASH-}" ] && [ "${READCACHE-}" != off ] && [ -z "$readcache_kept" ] &&
    [ "${BASH_EXECUTION_STRING-}" ] && [ -x @DIR@/readcache-run ]; then
    mapfile -d '' -t readcache_words <"/proc/$$/cmdline"
    case ${#readcache_words[@]}${readcache_words[1]-} in 3-c) # where nothing else can, it becomes bash
      READCACHE_BASH_ENV=${BASH_ENV-} BASH_ENV=@DIR@/agent-command.sh READCACHE_SINK= \
        READCACHE_BASH=${readcache_words[0]} exec @DIR@/readcache-run --shell "$BASH_EXECUTION_STRING" \
        2>&"$readcache_stderr" {readcache_stderr}>&- ;;
    esac
  fi
  [ "${READCACHE_SINK-none}" ] || unset READCACHE_SINK
  if [ "$readcache_served$readcache_whole" = yesparsed ]; then READCACHE_SINK=none && hash -r; fi
  exec {readcache_stderr}>&-
  readcache_dot=$readcache_later
  unset READCACHE_BASH readcache_words readcache_word readcache_later readcache_stderr readcache_served readcache_whole \
    readcache_kept
} {readcache_stderr}>&2 2>/dev/null # `bash -x` writes there what it does
${readcache_dot-} ${readcache_dot:+"$readcache_env"}
{ unset readcache_dot readcache_env; } 2>/dev/null
