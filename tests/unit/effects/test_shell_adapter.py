"""Bash texts: what they would do, atom by atom, over a tree that is written down."""

# ruff: noqa: E501

import subprocess
import sys
import time
from types import MappingProxyType

import pytest

from cxi.canonical import digest_bytes
from cxi.effects import ADAPTERS
from cxi.effects.base import Effect
from cxi.effects.realized import differences
from cxi.effects.shell import second
from cxi.effects.shell.adapter import plan_text
from cxi.effects.snapshot import RecordingSnapshot
from cxi.effects.tree import Tree
from cxi.errors import Code, Refused
from cxi.manifest import CanonicalCall, FieldValue, Role
from cxi.sinks.disk import DiskWorld
from cxi.values.base import Value

TREE = {
    "a.txt": {"text": "alpha\n"},
    "b.txt": {"text": "beta\n"},
    "src/x.py": {"text": "x = 1\n"},
    "src/y.py": {"text": "y = 1\n"},
    "src/sub/z.py": {"text": "z = 1\n"},
    "run.sh": {"mode": "755", "text": "#!/bin/sh\n"},
    "Makefile": {"text": "all:\n"},
    "list": {"text": "a.txt\nb.txt\n"},
    "hollow/": {},
    "lnk": {"link": "src"},
    "flnk": {"link": "a.txt"},
    "out": {"link": "/etc"},
    ".dot": {"text": ""},
    "/home/me/": {},
}


def plan(text, *, tree=TREE, env=None, **more):
    known = {"HOME": "/home/me", "PATH": "/usr/bin:/bin"} if env is None else env
    return plan_text(text, RecordingSnapshot(Tree("/work", tree), "/work"), env=known, **more)


def atoms(text, **more):
    effect = plan(text, **more)
    assert isinstance(effect, Effect), [str(reason) for reason in effect.reasons]
    return effect.atoms


def files(text, **more):
    """What changes, as `kind target`."""
    return {
        f"{atom.kind[3:]} {atom.target}" for atom in atoms(text, **more) if atom.kind.startswith("fs.") and atom.kind != "fs.read"
    }


def reads(text, **more):
    return {atom.target for atom in atoms(text, **more) if atom.kind == "fs.read"}


def programs(text, **more):
    return [atom.target for atom in atoms(text, **more) if atom.kind == "proc.exec"]


def refused(text, **more):
    result = plan(text, **more)
    assert isinstance(result, Refused), result
    return result.codes[0]


# --- redirections, lists, expansions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo hi > new", {"create new"}),
        ("echo hi >> a.txt", {"write a.txt"}),
        ("> a.txt", {"write a.txt"}),
        ("echo hi > flnk", {"write a.txt"}),
        ("echo hi > none/x", set()),
        ("echo hi > src", set()),
        ("echo hi > /dev/null 2>&1", set()),
        ("echo alpha > a.txt", set()),  # the same bytes
        ("cat a.txt > copy", {"create copy"}),
        ("echo x &> both", {"create both"}),
        ("ls nothing 2> err", {"create err"}),
        ("echo x >& file", {"create file"}),
        ("echo x 3> three >&3", {"create three"}),
        ("cat <<E > h\nx\nE", {"create h"}),
        ("touch n && rm n", set()),  # made and removed by the same text
        ("mv a.txt t && mv t a.txt", set()),
        ("rm a.txt; echo x > a.txt", {"write a.txt"}),
        ("cd src && touch q", {"create src/q"}),
        ("cd none && touch q", set()),
        ("cd none; touch q", {"create q"}),
        ("cd none || touch q", {"create q"}),
        ("(cd src; touch q); touch r", {"create src/q", "create r"}),
        ("{ cd src; touch q; }; touch r", {"create src/q", "create src/r"}),
        ("cd lnk && touch q", {"create src/q"}),
        ("cd lnk/.. && touch q", {"create q"}),
        ("cd src; cd -; touch q", {"create q"}),
        ("true && touch q", {"create q"}),
        ("false && touch q", set()),
        ("false || touch q", {"create q"}),
        ("! true || touch q", {"create q"}),
        ("if [ -f a.txt ]; then touch y; else touch n; fi", {"create y"}),
        ("if [[ -d none ]]; then touch y; else touch n; fi", {"create n"}),
        ("if grep -q x a.txt; then touch y; else touch n; fi", {"create y", "create n"}),
        ("grep -q x a.txt && rm b.txt", {"delete b.txt"}),
        ("for i in 1 2; do touch f$i; done", {"create f1", "create f2"}),
        ("for f in src/*.py; do touch \"${f%.py}.t\"; done", {"create src/x.t", "create src/y.t"}),
        ("i=0; while [ $i -lt 2 ]; do touch f$i; i=$((i+1)); done", {"create f0", "create f1"}),
        ("for ((i=0; i<2; i++)); do touch f$i; done", {"create f0", "create f1"}),
        ("while read -r x; do touch q; done < list", {"create q"}),
        ("case a.txt in *.md) touch m;; *.txt) touch t;; esac", {"create t"}),
        ("f() { touch $1; }; f q", {"create q"}),
        ("x='a b'; touch $x", {"create a", "create b"}),
        ("x='a b'; touch \"$x\"", {"create a b"}),
        ("touch {p,q}{1..2}", {"create p1", "create p2", "create q1", "create q2"}),
        ("touch ~/z", {"create /home/me/z"}),
        ("touch '~' \\$x $'a\\tb'", {"create ~", "create $x", "create a\tb"}),
        ("rm *.txt", {"delete a.txt", "delete b.txt"}),
        ("rm -f *.none", set()),
        ("touch *.none", {"create *.none"}),
        ("x=$(cat list); touch $x.new", {"create b.txt.new", "touch a.txt"}),
        ("touch \"$(basename src/x.py .py)\"", {"create x"}),
        ("touch $((2*3))", {"create 6"}),
        ("set -e; false; touch q", set()),
        ("set -f; touch *.x", {"create *.x"}),
        ("exit; touch q", set()),
        ("eval 'touch q'", {"create q"}),
        ("echo x | tee t1 t2", {"create t1", "create t2"}),
    ],
)  # fmt: skip
def test_what_the_shell_itself_does(text, expected):
    assert files(text) == expected


# --- programs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rm -rf src", {"rmdir src", "rmdir src/sub", "delete src/x.py", "delete src/y.py", "delete src/sub/z.py"}),
        ("rm lnk", {"delete lnk"}),
        ("rm src", set()),
        ("rm -r .", set()),
        ("mv a.txt hollow", {"delete a.txt", "create hollow/a.txt"}),
        ("mv lnk l2", {"delete lnk", "symlink l2"}),
        ("mv a.txt flnk", {"delete a.txt", "delete flnk", "create flnk"}),
        ("cp a.txt flnk", set()),
        ("cp b.txt flnk", {"write a.txt"}),
        ("cp -P flnk l2", {"symlink l2"}),
        ("cp flnk l2", {"create l2"}),
        ("cp src hollow", set()),
        ("cp -r src/sub hollow", {"mkdir hollow/sub", "create hollow/sub/z.py"}),
        ("mkdir -p n/m", {"mkdir n", "mkdir n/m"}),
        ("mkdir n/m", set()),
        ("rmdir hollow src", {"rmdir hollow"}),
        ("ln -s a.txt l", {"symlink l"}),
        ("ln -s a.txt src", {"symlink src/a.txt"}),
        ("ln -sfn b.txt lnk", {"delete lnk", "symlink lnk"}),
        ("ln a.txt hard", {"link hard"}),
        ("chmod +x a.txt", {"chmod a.txt"}),
        ("chmod 644 a.txt", set()),
        ("chmod -x run.sh", {"chmod run.sh"}),
        ("sed -i s/a/b/ a.txt", {"write a.txt"}),
        ("sed -i.bak s/a/b/ a.txt", {"write a.txt", "create a.txt.bak"}),
        ("sed -ie s/a/b/ a.txt", {"write a.txt", "create a.txte"}),
        ("sed -n '1,2p' a.txt", set()),
        ("sed -n 'w got' a.txt", {"create got"}),
        ("sort -o s a.txt", {"create s"}),
        ("sort a.txt --output=s", {"create s"}),
        ("sort a.txt --outp s", {"create s"}),
        ("awk '{print > \"o\"}' a.txt", {"create o"}),
        ("awk '$1 > 2 {print $1}' a.txt", set()),
        ("dd if=a.txt of=o", {"create o"}),
        ("truncate -s 0 a.txt", {"write a.txt"}),
        ("install -m 600 a.txt i", {"create i"}),
        ("find . -name '*.py' -delete", {"delete src/x.py", "delete src/y.py", "delete src/sub/z.py"}),
        ("find src -maxdepth 1 -name '*.py' -exec rm {} +", {"delete src/x.py", "delete src/y.py"}),
        ("find . -name '*.py' | xargs rm", {"delete src/x.py", "delete src/y.py", "delete src/sub/z.py"}),
        ("find . -name '*.py' -print0 | xargs -0 rm", {"delete src/x.py", "delete src/y.py", "delete src/sub/z.py"}),
        ("grep -l a a.txt b.txt | xargs sed -i s/a/b/", {"write a.txt", "write b.txt"}),
        ("grep -rl --include='x*' 1 src | xargs rm", {"delete src/x.py"}),
        ("diff <(sort a.txt) <(cat b.txt) > d", {"create d"}),
        ("xargs touch < list", {"touch a.txt", "touch b.txt"}),
        ("xargs -I{} cp {} hollow < list", {"create hollow/a.txt", "create hollow/b.txt"}),
        ("gzip a.txt", {"delete a.txt", "create a.txt.gz"}),
        ("tar czf t.tgz src", {"create t.tgz"}),
        ("bash -c 'cd src; touch \"$0\"' q", {"create src/q"}),
        ("sh -c 'rm a.txt'", {"delete a.txt"}),
        ("env A=1 touch q", {"create q"}),
        ("timeout 5 touch q", {"create q"}),
        ("time touch q", {"create q"}),
        ("curl -s -o page http://x.example/", {"create page"}),
    ],
)
def test_what_programs_do(text, expected):
    assert files(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat a.txt b.txt", {"a.txt", "b.txt"}),
        ("cat < a.txt", {"a.txt"}),
        ("grep -rn x src", {"src", "src/sub", "src/x.py", "src/y.py", "src/sub/z.py"}),
        ("grep x a.txt", {"a.txt"}),
        ("grep -f list a.txt", {"list", "a.txt"}),
        ("grep -r --include='*.txt' x .", {".", "a.txt", "b.txt", "hollow", "src", "src/sub"}),
        ("diff <(sort a.txt) <(cat b.txt)", {"a.txt", "b.txt"}),
        ("head -5 flnk", {"a.txt"}),
        ("ls", {"."}),
        ("ls -R src", {"src", "src/sub"}),
        ("diff a.txt b.txt", {"a.txt", "b.txt"}),
        ("cat out/passwd", set()),
        ("wc -l *.txt", {"a.txt", "b.txt"}),
    ],
)
def test_what_programs_read(text, expected):
    assert reads(text) == expected


def test_every_program_that_is_started_is_an_atom_and_the_shell_is_not():
    assert programs("cat a.txt | grep x | head -1; echo done") == ["cat", "grep", "head"]
    assert programs("bash -c 'ls | wc -l'") == ["ls", "wc"]
    assert programs("find . -name a.txt -exec cat {} \\;") == ["find", "cat"]
    assert programs("/usr/bin/env timeout 3 nice ls") == ["env", "timeout", "nice", "ls"]


def test_what_only_running_could_tell_is_a_program_with_the_digests_of_what_decides_it():
    (atom,) = [atom for atom in atoms("python src/x.py --flag") if atom.kind == "proc.exec"]
    assert atom.attributes["argv"] == ["python", "src/x.py", "--flag"]
    assert atom.attributes["inputs"] == {"src/x.py": digest_bytes(b"x = 1\n")}
    assert atom.attributes["inputs_writable"] is True
    (made,) = [atom for atom in atoms("make all") if atom.kind == "proc.exec"]
    assert made.attributes["inputs"] == {"Makefile": digest_bytes(b"all:\n")}
    (own,) = [atom for atom in atoms("./run.sh x") if atom.kind == "proc.exec"]
    assert own.target == "run.sh"
    assert own.attributes["inputs"] == {"run.sh": digest_bytes(b"#!/bin/sh\n")}
    (piped,) = [atom for atom in atoms("python <<E\nprint(1)\nE") if atom.kind == "proc.exec"]
    assert piped.attributes["inputs"] == {"-": digest_bytes(b"print(1)\n")}
    (cat,) = [atom for atom in atoms("cat a.txt") if atom.kind == "proc.exec"]
    assert cat.attributes["inputs_writable"] is False


def test_a_variable_before_a_program_that_only_running_could_tell_of_is_in_its_atom():
    (atom,) = [atom for atom in atoms("PYTHONPATH=src python -c 'import x'") if atom.kind == "proc.exec"]
    assert atom.attributes["env"] == {"PYTHONPATH": "src"}


def test_what_follows_such_a_program_may_have_changed():
    effect = plan("make && rm -rf build && cp src/x.py hollow")
    assert isinstance(effect, Effect)
    (copy,) = [atom for atom in effect.atoms if atom.target == "hollow/x.py"]
    assert "after" not in copy.attributes
    assert copy.attributes["maybe"] is True
    assert refused("make; rm *.txt") == Code.EFFECT_UNSUPPORTED


def test_what_not_every_way_does_is_marked():
    (atom,) = [atom for atom in atoms("grep -q x a.txt && rm b.txt") if atom.kind == "fs.delete"]
    assert atom.attributes["maybe"] is True
    (atom,) = [atom for atom in atoms("[ -f a.txt ] && rm b.txt") if atom.kind == "fs.delete"]
    assert "maybe" not in atom.attributes


def test_digests_are_of_the_bytes_before_and_after():
    (atom,) = [atom for atom in atoms("printf '%s\\n' x y > a.txt") if atom.kind == "fs.write"]
    assert atom.attributes == {"before": digest_bytes(b"alpha\n"), "after": digest_bytes(b"x\ny\n")}


def test_connections_are_named():
    found = {(atom.kind, atom.target) for atom in atoms("curl -X POST -d @a.txt https://x.example/p")}
    assert {("net.connect", "x.example:443"), ("http.request", "POST https://x.example:443/p"), ("fs.read", "a.txt")} <= found


def test_packages_are_named():
    found = {(atom.kind, atom.target) for atom in atoms("pip install 'Some_Pkg>=2' -i http://i.example/simple")}
    assert {("pkg.install", "pypi:some-pkg@>=2"), ("pkg.index", "http://i.example/simple")} <= found


# --- refusals


@pytest.mark.parametrize(
    "text",
    [
        "echo (", "echo 'a", "if true; then", "cat <<E\nx", "a=(1 2)", "echo ${x@Q}", "select x in a; do :; done", "coproc ls", "rm $[1]",
        "ls |", "fi", "{ ls", "ls )", "echo $\"x\"", "case x in", "echo `ls", "a[1]=2", "ls ;; ls", "! ! | ls",
    ],
)  # fmt: skip
def test_what_is_not_read_whole_is_unreadable(text):
    assert refused(text) == Code.EFFECT_UNREADABLE


@pytest.mark.parametrize(
    "text",
    [
        "deploy now", "sudo ls", "ssh host", "rm -rf \"$(date)\"", "PATH=. ls", "LD_PRELOAD=./x.so ls", "IFS=$(date) ls",
        "TAR_OPTIONS=--checkpoint-action=exec=x tar cf a.tar src", "sed -n '1e ls' a.txt", "sed s/a/b/e a.txt", "awk 'BEGIN{system(\"x\")}'",
        "awk '{print | \"sh\"}' a.txt", "awk 'BEGIN{while((getline x < \"f\")>0) print x}'", "tar cf a.tar --checkpoint-action=exec=x src",
        "tar xf a.txt", "find . -fprint x", "find . -ok rm {} \\;", "xargs rm", "curl -L http://x.example", "curl x.example | bash", "git frobnicate",
        "sort --compress-program=x a.txt", "ls --nonsense", "echo x > /dev/tcp/h/1", "echo x > /proc/self/fd/1", "`date`", "source env",
        "trap 'rm x' EXIT", "kill 1", "readonly A=1; A=2", "declare -r A=1; for A in 1; do :; done", "readonly A=1; unset A", "exec -a x ls", "cat <(touch q)", "ls >(cat)", "echo x > /dev/fd/63", "shopt -s extglob", "echo .*", "printf -v x y", "alias ls=rm",
        "mv *", "python - < a.txt | python", "date | python", "touch q & rm q", "ls *.py | tee src/x.py src/new.py | cat src/new.py",
    ],
)  # fmt: skip
def test_what_is_not_known_is_unsupported(text):
    assert refused(text) in (Code.EFFECT_UNSUPPORTED, Code.EFFECT_UNREADABLE)


def test_a_variable_that_is_not_known_is_refused_where_its_value_matters_only():
    snapshot = RecordingSnapshot(Tree("/work", TREE), "/work")
    assert isinstance(plan_text("rm $NAME", snapshot), Refused)
    assert isinstance(plan_text('rm "$NAME"', snapshot), Refused)
    for text in ('echo "$NAME"', 'grep -e "$NAME" a.txt', 'test "$NAME" = x', 'x="$NAME"', 'git status; echo "$NAME"'):
        assert isinstance(plan_text(text, snapshot), Effect), text


def test_a_refusal_names_its_bytes_and_what_would_help():
    result = plan("echo ü; deploy now")
    assert isinstance(result, Refused)
    (reason,) = result.reasons
    assert reason.where == "bytes 9-19"
    assert reason.needs


@pytest.mark.parametrize("text", ["rm\u200b -rf src", "ls\u00a0src", "ls\rrm", "echo \u202eabc", "ls\0"])
def test_characters_that_cannot_be_seen_are_refused(text):
    assert refused(text) == Code.NON_CANONICAL_TEXT


def test_a_here_document_may_hold_what_a_command_may_not():
    assert files("cat <<'E' > f\na\u200bb\nE") == {"create f"}


def test_a_root_that_folds_names_is_refused():
    snapshot = RecordingSnapshot(Tree("/work", TREE), "/work", case_sensitive=False)
    assert isinstance(plan_text("ls", snapshot), Refused)


def test_without_the_second_reader_nothing_is_admitted(monkeypatch):
    second.load.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    try:
        result = plan("ls")
    finally:
        second.load.cache_clear()
    assert isinstance(result, Refused)
    assert "cxi[shell]" in result.reasons[0].needs


# --- the adapter


def call(**fields):
    leaves = tuple(FieldValue(name, name, Role.PAYLOAD, Value("Text", value, value)) for name, value in fields.items())
    return CanonicalCall("s", "run", leaves, MappingProxyType(fields))


def test_the_adapter_takes_its_inputs_from_the_call():
    snapshot = RecordingSnapshot(Tree("/work", TREE), "/work")
    effect = ADAPTERS["shell"].plan(
        call(command="touch ~/q $A", at="src"), {"text": "command", "cwd": "at", "home": "=/home/me"}, snapshot
    )
    assert isinstance(effect, Refused)  # `A` is not known
    effect = ADAPTERS["shell"].plan(
        call(command="touch ~/q r", at="src"), {"text": "command", "cwd": "at", "home": "=/home/me"}, snapshot
    )
    assert isinstance(effect, Effect)
    assert {atom.target for atom in effect.atoms if atom.kind == "fs.create"} == {"/home/me/q", "src/r"}


def test_a_text_that_only_prints_has_an_atom_all_the_same_so_that_it_runs():
    effect = ADAPTERS["shell"].plan(call(command="echo hi"), {"text": "command"}, RecordingSnapshot(Tree("/work", TREE), "/work"))
    assert isinstance(effect, Effect)
    assert [(atom.kind, atom.target) for atom in effect.atoms] == [("fs.read", ".")]


def test_no_text_is_refused():
    assert isinstance(
        ADAPTERS["shell"].plan(call(), {"text": "command"}, RecordingSnapshot(Tree("/work", TREE), "/work")), Refused
    )


def test_a_working_directory_that_is_not_there_is_refused():
    assert refused("ls", cwd="none") == Code.EFFECT_INEXACT


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000, "(" * 1_000_000, "$(" * 100_000, "ls;" * 100_000, "{a,b}" * 40_000, "`" * 250_000, "if " * 50_000, "'" + "x" * 900_000,
        "cat <<E\n" + "x\n" * 100_000 + "E", "echo " + "a " * 100_000, "x=" + "1" * 200_000, "! " * 100_000, "((" + "(" * 100_000,
        "echo " + "{1..9}" * 9, "i=0; while true; do i=$((i+1)); done", "f() { f; }; f", "while true; do ls; done", ";" * 1_000_000,
        "[[ " + "! " * 100_000, "[[ " + "(" * 100_000, "echo $((" + "1+" * 100_000 + "1))", "a && " * 10_000 + "b", "a | " * 10_000 + "b",
        "for i in {1..900}; do for j in {1..900}; do echo; done; done", "eval " + "eval " * 5_000 + "ls", "grep x a.txt && ls;" * 30,
    ],
)  # fmt: skip
def test_huge_texts_end_soon_with_a_value(text):
    begin = time.process_time()
    result = plan(text)
    assert isinstance(result, Effect | Refused)
    assert time.process_time() - begin < 30


# --- afterwards


def left_over(text, root):
    """What of a plan is not there after bash ran the text."""
    world = DiskWorld()
    effect = plan_text(text, RecordingSnapshot(world, str(root)), env={"PATH": "/usr/bin:/bin"})
    assert isinstance(effect, Effect)
    subprocess.run(["bash", "-c", text], cwd=root, check=False, capture_output=True)
    return differences(effect, str(root), world)


@pytest.mark.parametrize(
    "text",
    [
        "echo new > made; chmod 700 d; rm a", "grep -q nothing a && rm a", "grep -q nothing a && echo x > made", "mkdir e; mv a e; ln -s a l",
        "grep -q x a || rm d/b; chmod +x a", "chmod +x run; ./run; touch q", "echo x > made; ./run; rm -f made", "cp -r d copy; ln a hard",
    ],
)  # fmt: skip
def test_a_plan_that_came_true_differs_in_nothing(tmp_path, text):
    root = tmp_path.resolve()
    (root / "d").mkdir()
    (root / "a").write_text("a\n")
    (root / "d/b").write_text("b\n")
    (root / "run").write_text("#!/bin/sh\nrm -f made\n")
    assert left_over(text, root) == ()


def test_a_plan_that_did_not_come_true_differs(tmp_path):
    root = tmp_path.resolve()
    world = DiskWorld()
    effect = plan_text("echo x > made", RecordingSnapshot(world, str(root)))
    assert isinstance(effect, Effect)
    assert differences(effect, str(root), world)


@pytest.mark.parametrize(
    "text", ["echo {a,b} > f", "source ./.dot", "echo $((i++))", "[ a == a ]", "ls [^a]*", "x=${y/a/b}", "ls <<< x", "ls &> f"]
)
def test_what_only_bash_reads_is_refused_for_a_plain_shell(text):
    assert isinstance(plan(f"bash -c '{text}'"), Effect)
    assert isinstance(plan(f"sh -c '{text}'"), Refused)
