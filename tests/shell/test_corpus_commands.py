# ruff: noqa: E501 -- commands are verbatim
"""Sixty commands of real agents, verbatim, and what each is believed to print and write when run in /w.

How a reading is written down here, one string for each thing, in order:
`* ` anything · `= text` literal text · `path 1-5,9-` lines of a file (`?`: unknown lines), then, where numbers stand in
front, their separator, the shift and `gaps` · `> path @n` a write before claim n · `>> path text` text authored.
"""

from __future__ import annotations

import pytest

from readcache.claims import Anything, Authored, Claim, FileLines, Write
from readcache.shell import read_command


def _claim(claim: Claim) -> str:
    if isinstance(claim, Anything):
        return "*"
    if not isinstance(claim, FileLines):
        return f"= {claim.text}"
    ranges = "?" if claim.ranges is None else ",".join(f"{start}-{end or ''}" for start, end in claim.ranges)
    numbers = "" if claim.sep is None else f" {claim.sep!r}{claim.shift:+d}"
    return f"{' '.join(claim.keys)} {ranges}{numbers}{' gaps' if claim.gaps else ''}"


def _write(write: Write) -> str:
    return f"> {write.key} @{write.before}"


def _authored(authored: Authored) -> str:
    return f">> {authored.key} {authored.first}: {authored.text}"


def written_down(command: str) -> list[str]:
    """The reading of a command that succeeded, in the notation above."""
    reading = read_command(command, "/w")
    assert reading.parsed
    return [*map(_claim, reading.claims), *map(_write, reading.writes), *map(_authored, reading.authored)]


CORPUS: dict[str, tuple[str, list[str]]] = {
    "01 cd + range": (
        "cd /testbed && sed -n '276,290p' django/utils/autoreload.py",
        ["/testbed/django/utils/autoreload.py 276-290"],
    ),
    "02 two ranges, one file": (
        "nl -ba django/db/models/fields/related_descriptors.py | sed -n '760,840p' && nl -ba django/db/models/fields/related_descriptors.py | sed -n '1188,1260p'",
        [
            "/w/django/db/models/fields/related_descriptors.py 760-840 '\\t'+0",
            "/w/django/db/models/fields/related_descriptors.py 1188-1260 '\\t'+0",
        ],
    ),
    "03 four ranges in one sed behind nl": (
        "nl -ba packages/core/src/evaluation/trace.ts | sed -n '1,90p;150,215p;324,400p;1350,1405p'",
        ["/w/packages/core/src/evaluation/trace.ts 1-90,150-215,324-400,1350-1405 '\\t'+0"],
    ),
    "04 three ranges, no line numbers shown": (
        "sed -n '340,385p;1485,1505p;1605,1625p' packages/core/src/evaluation/trace-envelope.ts",
        ["/w/packages/core/src/evaluation/trace-envelope.ts 340-385,1485-1505,1605-1625"],
    ),
    "05 adjoining ranges; line 470 twice": (
        "sed -n '180,470p' apps/dashboard/src/components/ResultTable.tsx; sed -n '470,590p' apps/dashboard/src/components/ResultTable.tsx; sed -n '988,1070p' apps/dashboard/src/components/ResultTable.tsx",
        [
            "/w/apps/dashboard/src/components/ResultTable.tsx 180-470",
            "/w/apps/dashboard/src/components/ResultTable.tsx 470-590",
            "/w/apps/dashboard/src/components/ResultTable.tsx 988-1070",
        ],
    ),
    "06 `$` in an unquoted path: bash expands it, the file is not read": (
        "sed -n '1,180p' apps/dashboard/src/routes/evals/$runId.$evalId.tsx && sed -n '1,190p' apps/dashboard/src/routes/projects/$projectId_/evals/$runId.$evalId.tsx && sed -n '1,140p' apps/dashboard/src/routes/projects/$projectId_/runs/$runId.tsx",
        ["*"],
    ),
    "07 `|| true &&` chain; either file may be missing": (
        "ls packages/core/src/evaluation/providers && sed -n '1,260p' packages/core/src/evaluation/providers/pi-coding-agent.ts 2>/dev/null || true && sed -n '1,320p' packages/core/src/evaluation/providers/pi-sdk.ts 2>/dev/null || true",
        [
            "*",
            "/w/packages/core/src/evaluation/providers/pi-coding-agent.ts 1-260",
            "/w/packages/core/src/evaluation/providers/pi-sdk.ts 1-320",
        ],
    ),
    "08 conditional": (
        "test -f CONCEPTS.md && sed -n '1,220p' CONCEPTS.md || true",
        ["/w/CONCEPTS.md 1-220"],
    ),
    "09 inside `if`": (
        "if [ -f .compound-engineering/config.local.yaml ]; then sed -n '1,160p' .compound-engineering/config.local.yaml; fi",
        ["/w/.compound-engineering/config.local.yaml 1-160"],
    ),
    "10 fallback; only one side prints; `$p`": (
        "sed -n '486,550p' src/sqlfluff/core/linter/linted_file.py 2>/dev/null || sed -n '486,$p' src/sqlfluff/core/linter/linted_file.py",
        ["/w/src/sqlfluff/core/linter/linted_file.py 486-550", "/w/src/sqlfluff/core/linter/linted_file.py 486-"],
    ),
    "11 ranges known only at run time": (
        'cd /testbed && for line in 575 933 1010 1151 1283 1483 1530 1682 1769 1880 2025 2120 2257 2297; do echo "=== Line $line ==="; sed -n "$((line-5)),$((line+10))p" django/db/models/fields/__init__.py; echo ""; done',
        [
            "= === Line 575 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 933 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1010 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1151 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1283 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1483 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1530 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1682 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1769 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 1880 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 2025 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 2120 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 2257 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n=== Line 2297 ===\n",
            "/testbed/django/db/models/fields/__init__.py ?",
            "= \n",
        ],
    ),
    "12 range from a substitution": (
        'line=$(grep -n "def _check_default_pk" django/db/models/base.py | cut -d: -f1) && sed -n "$line,$((line+40))p" django/db/models/base.py',
        ["/w/django/db/models/base.py ?"],
    ),
    "13 regex range, then head": (
        "sed -n '/^def martin_ruiz/,/^def [a-z]/p' ./pvlib/iam.py | head -50",
        ["/w/pvlib/iam.py ?"],
    ),
    "14 numbers shown start at 1, not at 1040": (
        "cd /testbed && awk 'NR >= 1040 && NR <= 1060' django/db/models/expressions.py | cat -n",
        ["/testbed/django/db/models/expressions.py 1040-1060 '\\t'-1039"],
    ),
    "15 range of a range": (
        "sed -n '1,220p' django/template/engine.py | nl -ba -v1 | sed -n '140,170p'",
        ["/w/django/template/engine.py 140-170 '\\t'+0"],
    ),
    "16 = lines 200-299": (
        "cat django/utils/cache.py | tail -n +200 | head -100",
        ["/w/django/utils/cache.py 200-299"],
    ),
    "17 a blob, not the work tree": (
        "cd /testbed && git show HEAD:django/views/static.py | sed -n '128,142p'",
        ["git:HEAD:django/views/static.py 128-142"],
    ),
    "18 a blob of a moving ref": (
        "git show origin/main:.agentv/targets.yaml | nl -ba | sed -n '78,118p'",
        ["git:origin/main:.agentv/targets.yaml 78-118 '\\t'+0"],
    ),
    "19 several files + glob; `==> f <==` banners; cut by the outer head": (
        "head -20 logging/logger.go trailers/trailers.go jsonutil/*.go 2>&1 | head -60",
        ["*"],
    ),
    "20 glob, filtered": (
        'cat .github/workflows/*.yml 2>/dev/null | grep -A20 "golangci-lint" | head -40',
        ["/w/.github/workflows/*.yml ?"],
    ),
    "21 glob in a directory name": (
        'cat .planning/phases/12-*/12-CONTEXT.md 2>/dev/null || echo "No context file"',
        ["/w/.planning/phases/12-*/12-CONTEXT.md ?", "*"],
    ),
    "22 path from a command; unquoted script": (
        'sed -n 625,680p "$(go env GOMODCACHE)/github.com/hinshun/vt10x@v0.0.0-20220301184237-5011da428d02/state.go"',
        ["*"],
    ),
    "23 path from find": (
        'find . -maxdepth 2 -iname "pre.ps1" -o -maxdepth 2 -iname "post.ps1" 2>/dev/null; echo ---; cat "$(find . -maxdepth 2 -iname pre.ps1)"',
        ["*", "= ---\n", "*"],
    ),
    "24 nested shell": (
        'bash -c \'cat "$(go env GOMODCACHE)/github.com/posthog/posthog-go@v1.9.0/posthog.go"\' | grep -A 60 "func (c \\*client) loop"',
        ["*"],
    ),
    "25 through xargs sh -c": (
        "find .agentv/verification -maxdepth 4 -type f -name '*.jsonl' 2>/dev/null | rg 'basic-shorthand-pi-sdk|basic-shorthand-pi-sdk-openai|export-exp-high' | xargs -r -n1 sh -c 'echo --- $1; sed -n \"1,2p\" \"$1\"' sh",
        ["*"],
    ),
    "26 find -exec cat": (
        'find . -type f -name "*.md" -exec cat {} \\;',
        ["*"],
    ),
    "27 drive-letter path": (
        "sed -n '243,260p;322,356p' D:/oh-my-posh/src/segments/git.go",
        ["/d/oh-my-posh/src/segments/git.go 243-260,322-356"],
    ),
    "28 backslash path in double quotes: bashlex returns `D:oh-my-posh...`": (
        'wc -l "D:\\oh-my-posh\\src\\segments\\python.go" "D:\\oh-my-posh\\src\\segments\\node.go" "D:\\oh-my-posh\\src\\segments\\dart.go" "D:\\oh-my-posh\\src\\segments\\dotnet.go" "D:\\oh-my-posh\\src\\segments\\ruby.go" "D:\\oh-my-posh\\src\\segments\\fortran.go"',
        ["*"],
    ),
    "29 tail (unknown start) and head of one file": (
        "tail -30 /d/oh-my-posh/website/docs/configuration/general.mdx && head -15 /d/oh-my-posh/website/docs/configuration/general.mdx",
        [
            "/d/oh-my-posh/website/docs/configuration/general.mdx ?",
            "/d/oh-my-posh/website/docs/configuration/general.mdx 1-15",
        ],
    ),
    "30 bytes changed by cat -A and sed: not raw": (
        "sed -n '50,60p;104,113p;150,160p' src/components/Studio/config.js | cat -A | sed 's/\\$$/<NL>/' | head -40",
        ["/w/src/components/Studio/config.js\x00cat -A | sed s/\\$$/<NL>/ ?"],
    ),
    "31 grep context as a reader; bashlex drops the backslash": (
        'cat src/sqlfluff/rules/L003.py | grep -n -B5 -A10 "NewlineSegment\\|WhitespaceSegment"',
        ["/w/src/sqlfluff/rules/L003.py ? ':'+0 gaps"],
    ),
    "32 150 lines by grep -A": (
        'cat ./pvlib/iam.py | grep -n "def physical" -A 150 | head -200',
        ["/w/pvlib/iam.py ? ':'+0 gaps"],
    ),
    "33 python slice, repr()d": (
        "python3 -c \"\nwith open('RemediateTab.tsx', 'r') as f:\n    lines = f.readlines()\nfor i, line in enumerate(lines[590:620], start=591):\n    print(repr(line))\n\"",
        ["*"],
    ),
    "34 python heredoc (quoted delimiter: bashlex fails)": (
        "python - <<'PY'\nimport inspect\nfrom django.db.models import base\nprint('\\n'.join(inspect.getsource(base).splitlines()[1288:1326]))\nPY",
        ["*"],
    ),
    "35 search and read in one output": (
        "grep -R \"key_name = str\\|def compile_json_path\\|compile_json_path(\" -n django | sed -n '1,200p' && nl -ba django/db/models/fields/json.py | sed -n '120,340p'",
        ["*", "/w/django/db/models/fields/json.py 120-340 '\\t'+0"],
    ),
    "36 two files, no border between them": (
        "cat D:/oh-my-posh/.gitignore D:/oh-my-posh/src/.gitignore 2>/dev/null",
        ["/d/oh-my-posh/.gitignore 1-", "/d/oh-my-posh/src/.gitignore 1-"],
    ),
    "37 tilde, escaped space, `tee` only in the path": (
        'tail -50 ~/Library/Application\\ Support/rtk/tee/1771501992_test.log | grep -A 20 "fail\\|FAIL\\|error\\|Error" | head -60',
        ["~/Library/Application Support/rtk/tee/1771501992_test.log ?"],
    ),
    "38 python one-liner": (
        "cd /testbed/test_encoding && python -c \"with open('test.sql', 'rb') as f: print(f.read())\"",
        ["*"],
    ),
    "39 tee from a here-string": (
        'sudo tee /etc/resolv.conf <<< "nameserver 8.8.8.8\\nnameserver 8.8.4.4"',
        ["= nameserver 8.8.8.8\\nnameserver 8.8.4.4\n", "> /etc/resolv.conf @0"],
    ),
    "40 reads by `<`, shows 100 lines, writes all": (
        "tee /tmp/main_part1.txt < /workspace/main.go | head -100",
        ["/workspace/main.go 1-100", "> /tmp/main_part1.txt @0"],
    ),
    "41 `$(( ))`: bashlex NotImplementedError": (
        "git show 378b6b7:cmd/entire/cli/checkpoint/checkpoint_test.go | tail -n +1311 | head -n $(( 1601 - 1311 )) > /tmp/new_tests.txt && head -10 /tmp/new_tests.txt",
        ["/tmp/new_tests.txt 1-10", "> /tmp/new_tests.txt @0"],
    ),
    "42 edit, then read the same file": (
        "sed -i \"s/return t.render(Context(context))/return t.render(Context(context, autoescape=self.autoescape))/\" django/template/engine.py && nl -ba django/template/engine.py | sed -n '149,165p'",
        ["/w/django/template/engine.py 149-165 '\\t'+0", "> /w/django/template/engine.py @0"],
    ),
    "43 heredoc, a tool rewrites the file, read; bashlex fails": (
        "cat > test_parentheses.sql << 'EOF'\n(\n    SELECT my_id,\n        other_thing,\n        one_more\n    FROM\n        my_table\n)\nEOF\n\nsqlfluff fix test_parentheses.sql --dialect ansi -f\ncat test_parentheses.sql",
        [
            "*",
            "/w/test_parentheses.sql 1-",
            "> /w/test_parentheses.sql @0",
            ">> /w/test_parentheses.sql 1: (\n    SELECT my_id,\n        other_thing,\n        one_more\n    FROM\n        my_table\n)\n",
        ],
    ),
    "44 head/cat/tail >> then mv over the source": (
        "# Create a new file with the fixed function\nhead -926 ./astroid/brain/brain_builtin_inference.py > /tmp/new_file.py\ncat /tmp/new_function.py >> /tmp/new_file.py\ntail -n +962 ./astroid/brain/brain_builtin_inference.py >> /tmp/new_file.py\nmv /tmp/new_file.py ./astroid/brain/brain_builtin_inference.py",
        ["> /tmp/new_file.py @0", "> /w/astroid/brain/brain_builtin_inference.py @0"],
    ),
    "45 cp, sed -i, mv back": (
        "cp ./pvlib/tools.py ./pvlib/tools.py.fixed && sed -i '357d' ./pvlib/tools.py.fixed && mv ./pvlib/tools.py.fixed ./pvlib/tools.py",
        ["> /w/pvlib/tools.py.fixed @0", "> /w/pvlib/tools.py @0"],
    ),
    "46 BSD `-i ''`": (
        "sed -i '' 's/^func TestCondenseSession_GeminiMultiCheckpoint/\\/\\/nolint:maintidx \\/\\/ Integration test with comprehensive verification steps\\nfunc TestCondenseSession_GeminiMultiCheckpoint/' cmd/entire/cli/strategy/manual_commit_test.go",
        ["> /w/cmd/entire/cli/strategy/manual_commit_test.go @0"],
    ),
    "47 files named only inside the patch": (
        "cd /testbed && cp pydicom/dataset.py.orig pydicom/dataset.py && git apply patch.txt",
        ["*", "> /testbed/pydicom/dataset.py @0", "> * @0"],
    ),
    "48 patch in a heredoc": (
        'git apply -p0 << \'PATCH\'\n*** Begin Patch\n*** Update File: sympy/matrices/matrices.py\n@@\n-    def det(self, method="bareiss"):\n+    def det(self, method="berkowitz"):\n*** End Patch\nPATCH',
        ["*", "> /w/sympy/matrices/matrices.py @0"],
    ),
    "49 whole tree, there and back": (
        'git stash push --keep-index -m "unstaged changes" && go build ./... 2>&1; BUILD_STATUS=$?; git stash pop; exit $BUILD_STATUS',
        ["*", "> * @0", "> * @1"],
    ),
    "50 the same, cd twice": (
        "cd D:/oh-my-posh && git stash && cd src && go vet ./cache/... 2>&1; cd .. && git stash pop",
        ["*", "> * @0", "> * @1"],
    ),
    "51 one file by git": (
        "git checkout --theirs cmd/entire/cli/hooks_claudecode_handlers.go && git add cmd/entire/cli/hooks_claudecode_handlers.go",
        ["*", "> /w/cmd/entire/cli/hooks_claudecode_handlers.go @0"],
    ),
    "52 any file, by a formatter": (
        'gofmt -w . && go build ./... 2>&1 | tail -80 && echo "BUILD_OK"',
        ["*", "= BUILD_OK\n", "> /w @0"],
    ),
    "53 by python -c": (
        "cd /testbed && python -c \"\n# Let me create a backup first\nimport shutil\nshutil.copy2('django/db/migrations/autodetector.py', 'django/db/migrations/autodetector.py.backup2')\n\nprint('Backup created')\n\"",
        ["*", "> /testbed/django/db/migrations/autodetector.py.backup2 @0"],
    ),
    "54 heredoc inside `$( )` inside quotes: bashlex fails, reads nothing": (
        "git add cmd/entire/cli/sessionid/sessionid_test.go && git commit -m \"$(cat <<'EOF'\nfix: gofmt alignment in sessionid_test.go\n\nCo-Authored-By: Claude Opus 4.5 <noreply@anthropic.com>\nEOF\n)\"",
        ["*"],
    ),
    "55 in a loop with variables": (
        'for test in test_with_issue.sql test_with_distinct.sql test_no_with.sql test_all_same_line.sql; do\n    echo "=== Testing $test ==="\n    cp /testbed/$test.bak /testbed/$test 2>/dev/null || true\n    sqlfluff fix /testbed/$test --dialect ansi -f > /dev/null 2>&1\n    echo "Result:"\n    cat /testbed/$test\n    echo ""\ndone',
        [
            "= === Testing test_with_issue.sql ===\nResult:\n",
            "/testbed/test_with_issue.sql 1-",
            "= \n=== Testing test_with_distinct.sql ===\nResult:\n",
            "/testbed/test_with_distinct.sql 1-",
            "= \n=== Testing test_no_with.sql ===\nResult:\n",
            "/testbed/test_no_with.sql 1-",
            "= \n=== Testing test_all_same_line.sql ===\nResult:\n",
            "/testbed/test_all_same_line.sql 1-",
            "= \n",
            "> /testbed/test_with_issue.sql @1",
            "> /testbed/test_with_distinct.sql @3",
            "> /testbed/test_no_with.sql @5",
            "> /testbed/test_all_same_line.sql @7",
        ],
    ),
    "56 output file of a run": (
        "cd /workspace && timeout 1 ./executable > /tmp/output.txt 2>&1; wc -l /tmp/output.txt; cat /tmp/output.txt",
        ["*", "/tmp/output.txt 1-", "> /tmp/output.txt @0"],
    ),
    "57 git diff to a file, then cat": (
        "cd /testbed && git diff astroid/modutils.py > patch.txt && cat patch.txt",
        ["/testbed/patch.txt 1-", "> /testbed/patch.txt @0"],
    ),
    "58 `time`: bashlex NotImplementedError": (
        "go build -o ./entire ./cmd/entire && time ./entire help > /dev/null",
        ["*"],
    ),
    "59 `||` inside `$( )`: bashlex ParsingError": (
        'cd /d/oh-my-posh/src && gofmt -l . && echo "---fieldalignment---" && go vet -vettool="$(command -v fieldalignment 2>/dev/null || echo none)" ./config/ 2>&1 | head -20',
        ["*", "= ---fieldalignment---\n", "*"],
    ),
    "60 backticks in `body='..'`: bashlex ParsingError, though single-quoted": (
        "gh api repos/entireio/cli/pulls/201/comments/2785533389/replies -f body='Fixed in cd9b3699 — replaced `strings.Contains` with `errors.Is(err, ErrBranchNotFound)` using the new sentinel error from `DeleteBranchCLI`.'",
        ["*"],
    ),
}


@pytest.mark.parametrize(("command", "expected"), CORPUS.values(), ids=CORPUS.keys())
def test_the_reading_of_a_recorded_command(command: str, expected: list[str]) -> None:
    assert written_down(command) == expected


def test_all_sixty_are_here() -> None:
    assert len(CORPUS) == 60
