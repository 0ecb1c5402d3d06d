"""Commands that are known to write no file that was there before they ran, by their first words.

What only prints, tests, builds or talks to a server. A build writes too, but not what somebody reads; a command that is
not here may write whatever it names. Imports nothing of the package: the prefilter asks here.
"""

from __future__ import annotations

import re


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


# Programs that write nothing, whatever they are told.
_PROGRAMS = words("""
    : [ actionlint apropos apt apt-cache apt-get arch ava b2sum bandit base32 base64 basedpyright basename bat
    batcat bc benchstat bg bibtex bind break brew c8 cProfile cal cat cd checkmake chgrp chmod chown cksum clear
    cloc cmake cmp column comm commitlint compgen compileall complete continue coverage ctest cut cypress date
    declare df diff diff3 difft dig dirname dirs disown django django.test dmesg doctest dpkg du echo egrep
    ensurepip errcheck exit export expr false fg fgrep fieldalignment file flake8 fold free getent getopts git-log
    govulncheck grep groups hadolint hash head help hexdump hexyl history host hostname http.server id identify
    ineffassign info javac jest jobs join jq json.tool karma kill killall last ldd less let lld local locale locate
    logger logname look ls lsattr lsb_release lsblk lscpu lsof lspci man mapfile md5 md5sum mdfind mkdir mkfifo
    mktemp mocha mongosh more mount mypy mysql nc netstat ninja nl nm nmap nose2 nproc ntpq numfmt nvidia-smi nyc
    objdump od paste pathchk pdb pdflatex pgrep phpunit ping pip pip3 pipdeptree pkill playwright popd pprof pr
    printenv printf ps psql pstree pushd pwd pwdx py.test py_compile pycodestyle pydocstyle pylint pyre pyright
    pytest radon read readarray readelf readlink readonly realpath redis-cli return rev rg rmdir rspec scc screen
    seq set sha1sum sha256sum sha512sum shasum shellcheck shift shopt site size sleep sort ss ssh-add ssh-keygen
    stat staticcheck strings stty sum sw_vers sync sysctl systemctl tac tail tap test this timeit times tldr tokei
    top tput tr tree true tsc tsc-watch tsort tty type typeset ulimit umask unalias uname uniq unittest unset uptime
    users vale venv virtualenv vitest vmstat vulture w wait wc whatis where whereis which who whoami yamllint yes
    zcat zgrep
    """)
# Programs of which that depends on the word behind.
_VERBS = {
    "git": """
        add annotate archive blame branch bundle cat-file check-ignore check-attr cherry clone commit config
        count-objects describe diff diff-index diff-tree diff-files difftool fetch for-each-ref fsck gc grep
        hash-object help init log ls-files ls-remote ls-tree maintenance merge-base merge-tree mktag mktree name-rev
        notes pack-objects prune push range-diff reflog remote repack replace rev-list rev-parse shortlog show
        show-branch show-ref stage status symbolic-ref tag update-index update-ref var verify-commit verify-pack
        version whatchanged worktree write-tree
    """,
    "hg": """
        annotate blame branch branches bundle cat commit diff files grep heads id identify incoming log manifest
        outgoing parents paths push root status summary tags tip version
    """,
    "svn": "annotate blame cat commit ci diff info list log ls propget proplist status st",
    "gh": """
        alias api auth browse cache codespace config extension gist issue label org project release run search secret
        ssh-key status variable workflow
    """,
    "go": "bug build clean doc env help install list test tool version vet",
    "cargo": """
        audit bench build b check c clean clippy deny doc help install locate-project login metadata nextest package
        pkgid publish search test t tree version
    """,
    "npm": """
        audit bin config doctor explain help info link list login logs ls outdated pack ping prefix publish root
        search start t test token view whoami why
    """,
    "docker": "images image info inspect login logs network ps pull push search stats top version volume",
    "terraform": "output plan providers show state validate version",
    "dotnet": "build clean list nuget pack publish restore test",
    "ruff": "check rule config linter version",
    "uv": "build cache export pip python tool tree version venv",
    "poetry": "build check config env search show",
    "biome": "check ci explain lint",
    "deno": "bench cache check doc info lint test",
    "rustup": "",
}
_VERBS |= {"pnpm": _VERBS["npm"], "yarn": _VERBS["npm"], "bun": _VERBS["npm"]}
_BY_VERB = {name: words(verbs) for name, verbs in _VERBS.items()}
# Whatever a program is: what is asked for so is an account, not a change …
_TOLD = words("--help --dry-run --version")
_FIND_ACTS = ("-exec", "-ok", "-delete", "-fprint", "-fls")
_PYTHONS = words("python python3 python.exe")
_GH_WRITES = words("checkout co sync")
_ASKS = words("-V --check --diff --list --noEmit")
_EDITORS = words("sd rpl fastmod comby codemod ed ex vi vim nvim emacs sponge")  # their first word may be any text
_ASKING_VERBS = words("version help lint check test list show status info view describe inspect search ls")
# … unless it is told to mend what it finds.
CHANGES = re.compile(
    r"(?<![\w-])--?(?:fix(?:-\w+)*|write|in-?place|apply|rewrite|update(?:-\w+)*|snapshot-update|overwrite)(?![\w-])"
)
# Words in the names of tasks (make, npm run) and of scripts that test, build or start something, or look at it.
_TASKS = words("""
    analyse analyze audit bench benchmark benchmarks build check checks ci clean compile coverage debug demo deploy
    dev docs down dup e2e example help install integration lint linter linters list logs preview print publish query
    read release repro reproduce run runtests search serve server show spec start status test tests tsc type
    typecheck types unit up validate verify version vet watch
    """)
_CHANGING = words("apply codegen edit fix fixes fmt format gen generate migrate patch refactor rename update write")
_LOOKING = words("check debug repro reproduce test tests verify")


def only_reads(name: str, args: tuple[str, ...]) -> bool:
    """True for a command that is known to write no file that was there before. `name` is without a directory; `args`
    are those of its arguments that are known."""
    if CHANGES.search(" ".join(args)):
        return False
    if name in _PROGRAMS:
        return True
    if not _TOLD.isdisjoint(args):
        return True
    if name == "find":
        return not any(arg.startswith(_FIND_ACTS) for arg in args)
    if name in _PYTHONS and len(args) > 1 and args[0] == "-m":
        return only_reads(args[1], args[2:])
    if name == "git" and len(args) > 2 and args[0] == "-C":
        args = args[2:]
    if name == "gh" and args[:1] in (("pr",), ("repo",)):
        return _GH_WRITES.isdisjoint(args[1:2])
    verbs = _BY_VERB.get(name)
    if verbs is not None:
        plain = next((arg for arg in args if not arg.startswith(("-", "+"))), "")
        return plain in verbs or not plain
    return not _ASKS.isdisjoint(args) or (name not in _EDITORS and bool(args) and args[0] in _ASKING_VERBS)


def is_test_or_build(task: str) -> bool:
    """True for the name of a task or a script that tests, builds or looks: `test:unit`, `test_fix.py`."""
    name, dot, _ = task.rpartition("/")[2].partition(".")
    parts = re.split(r"[^a-z0-9]+", name.lower())
    if _CHANGING.isdisjoint(parts):
        return not _TASKS.isdisjoint(parts)
    return parts[-1] == "check" or (bool(dot) and parts[0] in _LOOKING)
