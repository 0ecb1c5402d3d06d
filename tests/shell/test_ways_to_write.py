"""The ways in which agents write a file: after each, a re-read is no longer of the file that was shown; and after the
like on another file, or after what only reads, it still is."""

from __future__ import annotations

import pytest

from readcache import Session
from readcache.model.reply import Outcome, Reason
from tests.helpers.files import text

# Each writes f.py, or may write it, and names no other file of the reader's.
NAMED = """
sed -i 's/a/b/' f.py
sed -i.bak -e 's/a/b/' f.py
sed --in-place=.bak 's/a/b/' f.py
sed -Ei 's/a/b/' f.py
sed -i --posix 's/a/b/' f.py
perl -pi -e 's/a/b/' f.py
perl -0777 -i -pe 's/a/b/' f.py
perl -e 'open(F,">f.py"); print F "x"'
ruby -pi -e 'gsub(/a/,"b")' f.py
ruby -e "File.write('f.py','x')"
php -r 'file_put_contents("f.py","x");'
node -e "require('fs').writeFileSync('f.py','x')"
awk -i inplace '{print}' f.py
gawk -i inplace '{print}' f.py
awk '{print}' f.py > tmp && mv tmp f.py
awk '{print > "f.py"}' a
sort a | sponge f.py
sort -o f.py f.py
sort -u -of.py f.py
sort -uo f.py f.py
ed -s f.py <<< $'1d\\nw'
ed f.py <<'EOF'\\n1d\\nw\\nq\\nEOF
ex -sc '%s/a/b/|x' f.py
vim -es -c '%s/a/b/' -c wq f.py
nvim --headless -c '%s/a/b/' -c wq f.py
printf '%s\\n' 1d w q | ed -s f.py
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
apply_patch "*** Begin Patch\\n*** Update File: f.py\\n*** End Patch"
patch f.py fix.patch
patch -p1 <<'EOF'\\n--- a/f.py\\n+++ b/f.py\\n@@ -1 +1 @@\\n-a\\n+b\\nEOF
git apply <<'EOF'\\n--- a/f.py\\n+++ b/f.py\\n@@ -1 +1 @@\\n-a\\n+b\\nEOF
git checkout -- f.py
git checkout HEAD~1 f.py
git restore --source HEAD~1 f.py
git checkout-index -f f.py
git show HEAD:a > f.py
git mv a.py f.py
git rm f.py
hg revert f.py
svn revert f.py
cp a f.py
mv a f.py
install -m644 a f.py
rsync -a src/f.py f.py
ln -sf a f.py
curl -o f.py http://x
curl -sSLO http://x/f.py
curl -sSLof.py http://x
wget -O f.py http://x
wget http://x/f.py
dd if=a of=f.py
truncate -s 0 f.py
gzip -d f.py.gz
npx prettier --write f.py
bunx biome format --write f.py
black f.py
python -m isort f.py
uv run ruff check --fix f.py
autoflake -i f.py
clang-format -i f.py
dos2unix f.py
2to3 -w f.py
pyupgrade f.py
yq -i '.a=1' f.py
sd a b f.py
sd test check f.py
fastmod a b f.py
comby 'a' 'b' -i f.py
ast-grep run -p a -r b -U f.py
rpl a b f.py
touch f.py
jq . a > tmp && mv tmp f.py
F=f.py; sed -i 's/a/b/' $F
f=f.py && sed -i "s/a/b/" "$f"
for f in f.py; do sed -i 's/a/b/' $f; done
for i in 1; do echo x > f.py; done
if true; then echo x > f.py; fi
while read l; do echo $l >> f.py; done < a
until false; do sed -i s/a/b/ f.py; done
case $x in a) sed -i s/a/b/ f.py;; esac
change() { sed -i s/a/b/ f.py; }; change
change() { sed -i s/a/b/ "$@"; }
select x in a; do echo > f.py; done
! sed -i s/a/b/ f.py
time sed -i s/a/b/ f.py
coproc sed -i s/a/b/ f.py
x=$(sed -i s/a/b/ f.py)
echo "`sed -i s/a/b/ f.py`"
cat a | tee >(cat > f.py)
{ echo a; echo b; } > f.py
(cd .; sed -i 's/a/b/' f.py)
cd "$D" && sed -i 's/a/b/' f.py
exec > f.py; echo x
echo x > "$OUT/f.py"
cmd > "$(pwd)/f.py"
echo x > f$i.py
bash -c "sed -i 's/a/b/' f.py"
bash <<'EOF'\\nsed -i s/a/b/ f.py\\nEOF
eval "sed -i s/a/b/ f.py"
sudo sed -i 's/a/b/' f.py
env X=1 nice -n 5 sed -i 's/a/b/' f.py
env -C sub sed -i s/a/b/ f.py
env -S 'sed -i s/a/b/ f.py'
X=$(sed -i s/a/b/ f.py) true
sudo -s sed -i s/a/b/ f.py
docker exec -w /x c sed -i s/a/b/ f.py
parallel sed -i s/a/b/ ::: f.py
cat > edit.py <<'EOF'\\nopen('f.py','w').write('x')\\nEOF\\npython3 edit.py
str_replace_editor str_replace f.py --old a --new b
str_replace_based_edit_tool str_replace f.py
mytool --out=f.py
gcc -o f.py x.c
""".strip().splitlines()

# Each may write any file, or any below the directory.
ANY = """
patch -p1 < fix.patch
git apply fix.patch
git checkout main
git stash
git stash pop
git reset --hard
git revert HEAD
git merge x
git rebase main
git pull
git cherry-pick abc
git clean -fd
git read-tree -u -m HEAD
git bisect start
git submodule update
gh pr checkout 12
unzip -o x.zip
tar xf x.tar
tar -xzf x.tgz
rsync -a src/ .
cp -r src/. .
npm run format
pnpm format
npm run lint -- --fix
make fmt
mise run fmt
black .
ruff format
ruff check --fix .
isort .
pre-commit run --all-files
gofmt -w .
go fmt ./...
go generate ./...
cargo fmt
cargo clippy --fix
grep -rl a . | xargs sed -i 's/a/b/g'
grep -rl a . | while read f; do sed -i 's/a/b/' "$f"; done
xargs sed -i s/a/b/ g.py < list
find . -name '*.py' -exec sed -i 's/a/b/' {} +
find . -type f -exec sh -c 'sed -i s/a/b/ "$1"' _ {} \\;
for f in *.py; do sed -i 's/a/b/' "$f"; done
python3 -c "import glob; [open(p,'w') for p in glob.glob('*.py')]"
python3 edit.py
python3 manage.py makemigrations
./fix.sh
bash fix.sh
source ./fix.sh
curl -s http://x | python3 -
edit 1:5 <<'EOF'\\nx\\nend_of_edit
""".strip().splitlines()

READS = """
cat g.py
grep -n x f.py
sed -n 1,5p f.py > /dev/null
awk 'NR > 5' f.py
perl -ne 'print if /x/' f.py
wc -l f.py
ls -la f.py
stat f.py; file f.py; md5sum f.py
diff f.py g.py
git status
git diff f.py
git log -p f.py
git show HEAD:f.py | wc -l
git add f.py && git commit -m 'f.py'
git blame f.py
git stash list
git checkout -b new
gh pr create --title f.py
python -m pytest f.py
python3 -m py_compile f.py
pytest tests/test_f.py -k f.py
python3 test_f.py
node --check f.py
bash -n f.py
tsc --noEmit
mypy f.py
ruff check f.py
black --check f.py
eslint f.py
npm test
npm run build
make test
cargo test
go test ./...
go run . --help
cp f.py copy.py
cat f.py >> log.txt
for f in f.py; do wc -l $f; done
while read f; do wc -l $f; done < f.py
find . -name f.py
find . -name f.py -exec wc -l {} +
command -v f.py
git -C . log f.py
python3 -m json.tool f.py
find . -name '*.py' | xargs wc -l
case $x in a) wc -l f.py;; esac
sed -i s/a/b/ f.pyc
sed -i s/a/b/ other/f.py
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


@pytest.mark.parametrize("command", [command for command in NAMED if '"$@"' not in command])
def test_the_like_command_on_another_file_writes_that_one(command: str) -> None:
    other = command.replace("f.py", "g.py").replace("f$i.py", "g$i.py")
    assert asked_again_after(other, Session("/r")) is Reason.COVERED


@pytest.mark.parametrize("command", ANY)
def test_a_command_that_may_have_written_any_file_may_have_written_this_one(command: str) -> None:
    assert asked_again_after(command, Session("/r")) is Reason.WRITTEN


@pytest.mark.parametrize("command", READS)
def test_a_command_that_only_reads_writes_nothing(command: str) -> None:
    assert asked_again_after(command, Session("/r")) is Reason.COVERED


@pytest.mark.parametrize("command", ["if true; then sed -i s/a/b/ f.py", "echo 'x; sed -i s/a/b/ f.py"])
def test_what_no_parser_takes_may_have_written_what_it_names(command: str) -> None:
    assert asked_again_after(command, Session("/r")) is Reason.WRITTEN
    assert asked_again_after(command.replace("f.py", "g.py"), Session("/r")) is Reason.COVERED


def test_a_script_that_was_shown_may_have_written_only_what_it_names() -> None:
    for script, reason in (("open('g.py', 'w')\n", Reason.COVERED), ("open('f.py', 'w')\n", Reason.WRITTEN)):
        session = Session("/r")
        session.observe(f"cat > edit.py <<'EOF'\n{script}EOF", "", call_id="c0")
        assert asked_again_after("python3 edit.py", session) is reason


def test_another_reader_of_the_session_is_told_of_what_may_have_been_written() -> None:
    main = Session("/r")
    helper = main.fork("helper")
    main.observe("cat f.py", text(), call_id="c1")
    helper.observe("python3 -c \"open('f.py', 'w')\"", "", call_id="h1")
    assert main.observe("cat f.py", text(), call_id="c2").reason is Reason.WRITTEN


def test_a_file_that_is_read_before_it_may_be_written_is_written_after_it_was_read() -> None:
    session = Session("/r")
    session.observe("cat f.py; python3 edit.py", text(), call_id="c1")
    assert not session.view.covers("/r/f.py", 1, 9)
    session.observe("python3 edit.py > log; cat f.py", text(), call_id="c2")
    assert session.view.covers("/r/f.py", 1, 9)


def test_who_insists_is_served_though_a_command_between_may_have_written_some_other_file() -> None:
    session = Session("/r")
    for number in (1, 2):
        session.observe("cat f.py", text(), call_id=f"c{number}")
    session.observe("mytool g.py", "", call_id="c3")
    assert session.observe("cat f.py", text(), call_id="c4").reason is Reason.INSISTED
