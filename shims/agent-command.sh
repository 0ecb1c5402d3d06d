# For BASH_ENV: the whole-command way. The agent's `bash -c COMMAND` becomes `readcache run -c COMMAND`, which parses
# it, so that a pipeline such as `nl -ba f | sed -n '10,20p'` is understood too. Only where nothing but the command was
# given to bash, no options and no arguments, since they would be lost; the per-tool way serves all other shells.
{
  # READCACHE_BASH: this is the bash that readcache became in the end.
  if [ "${READCACHE_SESSION-}" ] && [ -z "${READCACHE_SINK-}${READCACHE_INSIDE-}${READCACHE_BASH-}" ] &&
    [ "${READCACHE-}" != off ] && [[ $(ulimit -v; ulimit -d) != *[0-9]* ]] &&
    [ "${BASH_EXECUTION_STRING-}" ] && [ -x @PYTHON@ ] && [ -r @ENTRY@ ]; then
    mapfile -d '' -t readcache_words <"/proc/$$/cmdline"
    case ${#readcache_words[@]}${readcache_words[1]-} in 3-c)
      READCACHE_BASH=${readcache_words[0]} exec @PYTHON@ -ISE @ENTRY@ @IMPORTS@ - "$BASH_EXECUTION_STRING" \
        2>&"$readcache_stderr" {readcache_stderr}>&- ;;
    esac
  fi
  . @DIR@/agent-shell.sh
  exec {readcache_stderr}>&-
  unset READCACHE_BASH readcache_words readcache_stderr
} {readcache_stderr}>&2 2>/dev/null # `bash -x` writes there what it does
