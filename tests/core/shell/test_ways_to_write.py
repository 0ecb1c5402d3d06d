"""The ways in which agents write a file: after each the file is shown again. After the like on another file, after a
command that only reads, and after one of unknown effect, the bytes decide."""

from __future__ import annotations

import pytest

from readcache import Session
from readcache.core.model.reply import Outcome, Reason
from tests.helpers.files import text

# Each writes f.py, or may write it, and names no other file of the reader's.
NAMED = """
sed -i 's/a/b/' f.py
sed -i.bak -e 's/a/b/' f.py
sed --in-place=.bak 's/a/b/' f.py
sed -Ei 's/a/b/' f.py
apply_patch "*** Begin Patch\\n*** Update File: f.py\\n*** End Patch"
sed -i -e "s/$a/b/" f.py
sed -i --posix 's/a/b/' f.py
perl -pi -e 's/a/b/' f.py
perl -0777 -i -pe 's/a/b/' f.py
perl -e 'open(F,">f.py"); print F "x"'
ruby -pi -e 'gsub(/a/,"b")' f.py
ruby -e "File.write('f.py','x')"
php -r 'file_put_contents("f.py","x");'
node -e "require('fs').writeFileSync('f.py','x')"
awk '{print}' f.py > tmp && mv tmp f.py
ed f.py <<'EOF'\\n1d\\nw\\nq\\nEOF
echo x >> f.py
echo x >| f.py
: > f.py
cat > f.py <<'EOF'\\nx\\nEOF
cat <<EOF | tee f.py\\nx\\nEOF
tee -a f.py <<'EOF'\\nx\\nEOF
python3 - <<'EOF'\\nopen("f.py","w").write("x")\\nEOF
python3 -c "open('f.py','w').write('x')"
python3 -c "from pathlib import Path; p=Path('f.py'); p.write_text(p.read_text().replace('a','b'))"
python3 - <<'EOF'\\np = 'f.py'\\ns = open(p).read()\\nwith open(p, 'w') as fh:\\n    fh.write(s)\\nEOF
python3 - <<'EOF'\\nfor p in ['f.py']:\\n    open(p, 'w').write('x')\\nEOF
python3 - <<'EOF'\\ndef main():\\n  path = "f.py"\\n  with open(path, "w") as fh:\\n    fh.write("x")\\nmain()\\nEOF
python3 - f.py <<'EOF'\\nimport sys\\np=sys.argv[1]\\nopen(p,'w').write('x')\\nEOF
python3 -c "import sys; open(sys.argv[1],'w').write('x')" f.py
python3 -c "import fileinput; [print(l, end='') for l in fileinput.input('f.py', inplace=True)]"
python3 -c "import os; os.rename('a','f.py')"
python3 -c "import os; p=os.path.join('.', 'f.py'); open(p,'w').write('x')"
apply_patch <<'EOF'\\n*** Begin Patch\\n*** Update File: f.py\\n@@\\n-a\\n+b\\n*** End Patch\\nEOF
patch -p1 <<'EOF'\\n--- a/f.py\\n+++ b/f.py\\n@@ -1 +1 @@\\n-a\\n+b\\nEOF
git show HEAD:a > f.py
cp a f.py
mv a f.py
jq . a > tmp && mv tmp f.py
F=f.py; sed -i 's/a/b/' $F
f=f.py && sed -i "s/a/b/" "$f"
for f in f.py; do sed -i 's/a/b/' $f; done
for i in 1; do echo x > f.py; done
if true; then echo x > f.py; fi
{ echo a; echo b; } > f.py
(cd .; sed -i 's/a/b/' f.py)
exec > f.py; echo x
bash -c "sed -i 's/a/b/' f.py"
while true; do sed -i 's/a/b/' f.py; break; done
until sed -i 's/a/b/' f.py; do sleep 1; done
case x in x) sed -i 's/a/b/' f.py;; esac
edit() { sed -i 's/a/b/' f.py; }; edit
! sed -i 's/a/b/' f.py
while true; do echo x > f.py; break; done
while read x; do\\ncat > f.py <<EOF\\nx\\nEOF\\ndone < list
sudo sed -i 's/a/b/' f.py
while read x; do echo $x; done < list > f.py
""".strip().splitlines()

READS = """
cat g.py
sed -n 1,5p f.py > /dev/null
wc -l f.py
diff f.py g.py
git diff f.py
git commit -m 'f.py'
python -m pytest f.py
python3 test_f.py
node --check f.py
python3 -m json.tool f.py
cp f.py copy.py
cat f.py >> log.txt
for f in f.py; do wc -l $f; done
while read f; do wc -l $f; done < f.py
while read f; do sed -n 1,5p $f; done < f.py
find . -name '*.py' | xargs wc -l
sed -i s/a/b/ f.pyc
sed -i s/a/b/ other/f.py
""".strip().splitlines()

# What these write cannot be read in the command: the bytes of the next read decide.
UNKNOWN = """
git stash
git checkout main
black .
python3 edit.py
./fix.sh
make fmt
awk '{print}' list | xargs wc -l
while read f; do echo "$f" >> log; done < list
cat list | xargs sed -n 1,5p
find . -name '*.py' -exec sed -n 1,5p {} +
""".strip().splitlines()

# These edit files in place, and which ones only running them would tell.
ANY = """
while read f; do sed -i 's/a/b/' "$f"; done < list
grep -l a *.py | while read f; do sed -i 's/a/b/' "$f"; done
until sed -i 's/a/b/' "$f"; do f=f.py; done
while read f; do if test "$f"; then sed -i 's/a/b/' "$f"; fi; done < list
case $f in *.py) sed -i 's/a/b/' "$f";; esac
edit() { sed -i 's/a/b/' "$1"; }; edit f.py
! sed -i 's/a/b/' "$f"
for f in $(grep -rl a .); do sed -i 's/a/b/' $f; done
sed -i 's/a/b/' $(grep -rl a .)
sed -i 's/a/b/' g.py "$f"
sed -i -e "s/$a/b/" "$f"
grep -rl a . | xargs sed -i 's/a/b/'
grep -rlZ a . | xargs -0 -r -n 1 sed -i 's/a/b/'
cat list | xargs -I{} sed -i 's/a/b/' {}
cat list | xargs perl -pi -e 's/a/b/'
cat list | xargs sh -c 'sed -i s/a/b/ "$@"' sh
cat list | while read f; do echo "$f"; done | xargs gsed --in-place s/a/b/
perl -pi -e 's/a/b/' $(cat list)
find . -name '*.py' -exec sed -i 's/a/b/' {} +
find . -name '*.py' -execdir sed -i 's/a/b/' {} \\;
""".strip().splitlines()


def asked_again_after(command: str, reader: Session) -> Reason:
    """The reason for which f.py, once shown, is or is not left out when it is asked for after `command`."""
    reader.observe("cat f.py", text(), call_id="c1")
    reader.observe(command.replace("\\n", "\n"), "", call_id="c2")
    reply = reader.observe("cat f.py", text(), call_id="c3")
    if reply.reason is Reason.CHANGED:  # from what the command itself put into the file
        return Reason.WRITTEN
    assert (reply.outcome is Outcome.FULL) == (reply.reason is Reason.WRITTEN)
    return reply.reason


@pytest.mark.parametrize("command", NAMED)
def test_a_file_that_a_command_may_have_written_is_shown_again(command: str) -> None:
    assert asked_again_after(command, Session("/r")) is Reason.WRITTEN


@pytest.mark.parametrize("command", NAMED)
def test_the_like_command_on_another_file_writes_that_one(command: str) -> None:
    assert asked_again_after(command.replace("f.py", "g.py"), Session("/r")) is Reason.COVERED


@pytest.mark.parametrize("command", READS)
def test_a_command_that_only_reads_writes_nothing(command: str) -> None:
    assert asked_again_after(command, Session("/r")) is Reason.COVERED


@pytest.mark.parametrize("command", UNKNOWN)
def test_after_a_command_of_unknown_effect_the_bytes_decide(command: str) -> None:
    assert asked_again_after(command, Session("/r")) is Reason.COVERED
    session = Session("/r")
    session.observe("cat f.py", text(), call_id="c1")
    session.observe(command, "", call_id="c2")
    reply = session.observe("cat f.py", text().replace("1", "one", 1), call_id="c3")
    assert (reply.outcome, reply.reason) == (Outcome.FULL, Reason.CHANGED)


@pytest.mark.parametrize("command", ANY)
def test_after_an_edit_in_place_of_unknown_files_every_file_is_shown_again(command: str) -> None:
    assert asked_again_after(command, Session("/r")) is Reason.WRITTEN


def test_another_reader_of_the_session_is_told_of_what_may_have_been_written() -> None:
    main = Session("/r")
    helper = main.fork("helper")
    main.observe("cat f.py", text(), call_id="c1")
    helper.observe("python3 -c \"open('f.py', 'w')\"", "", call_id="h1")
    assert main.observe("cat f.py", text(), call_id="c2").reason is Reason.WRITTEN


def test_a_file_that_is_read_before_it_may_be_written_is_written_after_it_was_read() -> None:
    session = Session("/r")
    session.observe("cat f.py; python3 -c \"open('f.py', 'w')\"", text(), call_id="c1")
    assert not session.view.covers("/r/f.py", 1, 9)
    session.observe("python3 -c \"open('f.py', 'w')\" > log; cat f.py", text(), call_id="c2")
    assert session.view.covers("/r/f.py", 1, 9)


def test_who_insists_is_served_though_a_command_between_may_have_written_some_other_file() -> None:
    session = Session("/r")
    for number in (1, 2):
        session.observe("cat f.py", text(), call_id=f"c{number}")
    session.observe("python3 -c \"open('g.py', 'w')\"", "", call_id="c3")
    assert session.observe("cat f.py", text(), call_id="c4").reason is Reason.INSISTED
