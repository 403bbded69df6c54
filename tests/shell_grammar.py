"""Bash texts, made up from a grammar: awkward names, globs, quoting, lists, loops, redirections, the programs that agents use."""

# ruff: noqa: E501

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Pick = Callable[[Sequence[Any]], Any]

FILES = {
    "a.txt": "alpha\nbeta\ngamma\n",
    "b.txt": "beta\n",
    "empty": "",
    "notes.md": "# notes\n- one\n- two\n",
    "run.sh": "#!/bin/sh\necho run\n",
    "src/x.py": "import os\nprint('x')\n",
    "src/y.py": "y = 1\n",
    "src/sub/z.py": "z = 2\n",
    "src/sub/.hidden": "h\n",
    "d/one": "1\n",
    "d/two words": "2\n",
    "-n": "dash\n",
    "-o.txt": "option\n",
    "sp ace.txt": "space\n",
    "q'uote": "quote\n",
    "ünï.txt": "unicode\n",
    "*star": "star\n",
    ".dot": "dot\n",
    "list": "a.txt\nb.txt\n",
}
FOLDERS = ("hollow", "d/deep")
LINKS = {"lnk": "src", "flnk": "a.txt", "dead": "nowhere", "d/up": "../b.txt"}

_PLACES = [*FILES, "src", "src/sub", "d", "hollow", "lnk", "flnk", "dead", "d/up", "lnk/x.py", "none", "d/none", "none/deep", "new", "d/new", ".", "./a.txt",
           "src/../a.txt", "lnk/", "d/", "src/"]  # fmt: skip
_NEW = [
    "new",
    "n w",
    "d/new",
    "hollow/new",
    "a.txt",
    "b.txt",
    "flnk",
    "dead",
    "src/x.py",
    "d",
    "none/x",
    "-new",
    "ünew",
    "lnk/new",
    "hollow",
    "lnk",
    "d/up",
]
_GLOBS = ["*", "*.txt", "*.py", "src/*", "src/*.py", "[ab].txt", "?.txt", "*/", "*/*", "no*match", "d/*", ".[!.]*", "*.{txt,md}", "[!a]*.txt", "src/*/z.py", "{a,b}.txt", "'*'star",
          "-*", "lnk/*", "*'o'*", "s*/x.py", "\\*star", "*\\ *", "[[:lower:]].txt"]  # fmt: skip


def build(root: Path) -> None:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    (root / "run.sh").chmod(0o755)


quote = shlex.quote


def _spelled(pick: Pick, text: str) -> str:
    """One of the ways in which bash can be told a text."""
    way = pick(range(6))
    if way == 0 and '"' not in text:
        return '"' + text.replace("\\", "\\\\").replace("$", "\\$").replace("`", "\\`") + '"'
    if way == 1:
        return "$'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if way == 2 and len(text) > 2 and text.isascii() and text.replace(".", "").replace("/", "").isalnum():
        return text[:1] + "'" + text[1:] + "'"  # fmt: skip
    if way == 3:
        return "".join(char if char.isalnum() or char in "./-_" or not char.isascii() else "\\" + char for char in text)
    return shlex.quote(text)


def _place(pick: Pick) -> str:
    if pick(range(4)) == 0:
        return str(pick(_GLOBS))
    return _spelled(pick, pick(_PLACES))


def _new(pick: Pick) -> str:
    return _spelled(pick, pick(_NEW))


def _places(pick: Pick) -> str:
    return " ".join(_place(pick) for _ in range(pick([1, 1, 2, 3])))


def _simple(pick: Pick) -> str:
    p, n, ps = lambda: _place(pick), lambda: _new(pick), lambda: _places(pick)
    choice = pick(range(47))
    match choice:
        case 0 | 1:
            return "echo " + pick(['hi', '-n x', '-e \"a\\tb\"', '$x', '\"$x\"', '$((1+2))', '{1..3}', 'a b', '~'])  # fmt: skip
        case 2:
            return "cat " + ps()  # fmt: skip
        case 3:
            return "touch " + pick(['', '', '-c ', '-- ']) + n()  # fmt: skip
        case 4:
            return "mkdir " + pick(['', '-p ', '-p -- ', '-v ']) + n()  # fmt: skip
        case 5:
            return "rm " + pick(['', '-f ', '-r ', '-rf ', '-rf -- ', '-d ', '-fr ']) + ps()  # fmt: skip
        case 6:
            return "cp " + pick(['', '-r ', '-a ', '-p ', '-n ', '-f ', '-R ', '-rT ', '-L ', '-P ', '-- ']) + p() + " " + n()  # fmt: skip
        case 7:
            return "mv " + pick(['', '-f ', '-n ', '-T ', '-- ', '-v ']) + p() + " " + n()  # fmt: skip
        case 8:
            return "cp " + pick(['', '-r ', '-t d ']) + ps() + " " + pick(['d', 'hollow', 'src', 'lnk', 'none', 'd/'])  # fmt: skip
        case 9:
            return "mv " + pick(['', '-t d ']) + ps() + " " + pick(['d', 'hollow', 'src', 'lnk', 'none'])  # fmt: skip
        case 10:
            return "ln " + pick(['-s ', '-sf ', '-sfn ', '', '-f ', '-snf ', '-sT ']) + _spelled(pick, pick(_PLACES)) + " " + n()  # fmt: skip
        case 11:
            return "rmdir " + pick(['', '-p ', '--ignore-fail-on-non-empty ']) + p()  # fmt: skip
        case 12:
            return "chmod " + pick(['+x', '644', 'u-w,g+r', 'a=r', '-x', '-R 755', 'go-r', '-R +X', '0600', '4755', '+s', '-w']) + " " + ps()  # fmt: skip
        case 13:
            return "sed " + pick(['-i', '-i.bak', '-n', '-i -e', '-E -i', '']) + " " + quote(pick(['s/a/b/', '/x/d', '1d', 's,a,b,g', '$a\\ end', '2q', 'p', '1,2p', 'w out.sed', 's/a/b/w out2'])) + " " + p()  # fmt: skip
        case 14:
            return "grep " + pick(['', '-r ', '-n ', '-l ', '-c ', '-rn ', '-v ', '-i ', '-R ']) + pick(['a', 'beta', '^x', 'nothing']) + " " + ps()  # fmt: skip
        case 15:
            return "find " + pick(['.', 'src', 'd', 'lnk', '. src', 'none', '']) + " " + pick(['', '-type f', '-name \"*.py\"', '-maxdepth 1', '! -name \"*.txt\"', '-empty', '-name a.txt -o -name b.txt', '-path \"*sub*\"', '-type d']) + " " + pick(['', '-print', '-delete', '-exec rm {} \\;', '-exec cat {} +', '-exec touch {}.new \\;', '-exec cp {} hollow \\;', '-prune -o -print', '-exec grep -q a {} \\; -print', '-mtime +1 -delete', '-exec sh -c \"echo hi\" \\;'])  # fmt: skip
        case 16:
            return "sort " + pick(['', '-u ', '-o out.s ', '-r ', '-n ']) + ps()  # fmt: skip
        case 17:
            return "tee " + pick(['', '-a ']) + n() + " < " + p()  # fmt: skip
        case 18:
            return pick(['head -2', 'tail -n 1', 'wc -l', 'uniq', 'nl', 'cut -c1', 'tac', 'md5sum', 'base64', 'od -c', 'file', 'stat', 'du', 'diff b.txt', 'cmp a.txt', 'head -n1']) + " " + p()  # fmt: skip
        case 19:
            return "ls " + pick(['', '-la ', '-R ', '-d ', '-1 ', '-a ']) + ps()  # fmt: skip
        case 20:
            return "awk " + quote(pick(['{print $1}', 'NR==1', '{print > \"out.awk\"}', 'BEGIN{x=1} {x+=1} END{print x}', '/a/ {print $0 >> \"app.awk\"}', '{if ($1 > 2) print}', '$1>\"b\"'])) + " " + p()  # fmt: skip
        case 21:
            return "printf " + pick(['\"%s\\n\" a b', 'x', '\"%d\\n\" 3', '\"%s\" \"$x\"']) + " > " + n()  # fmt: skip
        case 22:
            return "echo " + pick(['hi', '$x', '\"a  b\"', '*.py']) + " " + pick(['>', '>>', '>|', '&>', '2>', '1>', '>&', '2>>']) + " " + n()  # fmt: skip
        case 23:
            return "cat " + pick(['<', '0<']) + " " + p()  # fmt: skip
        case 24:
            return "x=" + pick(['1', 'a.txt', '\"b c\"', '*.txt', '$(echo q)', '$(cat b.txt)', '${x:-d}', '~/z', '$((2*3))', '\"*\"'])  # fmt: skip
        case 25:
            return pick(['rm', 'touch', 'cat', 'echo']) + " " + pick(['$x', '\"$x\"', '${x}y', '\"${x%.txt}.new\"', '${x:-new}', '\"${x#a}\"z', '${#x}'])  # fmt: skip
        case 26:
            return "cd " + pick(['src', 'd', '..', '-', 'none', 'lnk', '\"d/deep\"', '.', 'src/sub', 'lnk/sub', 'a.txt', ''])  # fmt: skip
        case 27:
            return "test " + pick(['-f a.txt', '-d none', '-e dead', '-L flnk', '\"$x\" = 1', '-n \"$x\"', '-z \"$x\"', '1 -lt 2', '-s empty', 'x', '! -f a.txt', '-h lnk', '-x run.sh'])  # fmt: skip
        case 28:
            return "[ " + pick(['-f a.txt', '-d src', '\"$x\" != 1', '-e none', '3 -gt 2', '-r a.txt', '\"$x\" == a.txt']) + " ]"  # fmt: skip
        case 29:
            return "[[ " + pick(['-f a.txt', '$x == a*', '$x = 1', '-n $x && -d src', '! -e none', '-f none || -d d', '\"$x\" < b', 'a =~ ^a', '-s empty']) + " ]]"  # fmt: skip
        case 30:
            target = pick(["", "> " + n(), ">> " + n()])
            return "cat <<" + pick(["E", '"E"']) + " " + target + "\nline $x `echo t`\n\\$y \\\\ end\nE"
        case 31:
            return "cat <<< " + pick(['\"$x\"', 'word', '\"a b\"']) + " > " + n()  # fmt: skip
        case 32:
            return "xargs " + pick(['', '-n1 ', '-I{} ', '-r ']) + pick(['touch', 'rm -f', 'cat', 'echo {}', 'cp {} hollow']) + " < list"  # fmt: skip
        case 33:
            return "dd if=a.txt of=" + n() + " " + pick(['', 'bs=1 count=2', 'status=none', 'conv=notrunc'])  # fmt: skip
        case 34:
            return "truncate -s " + pick(['0', '3', '+1']) + " " + n()  # fmt: skip
        case 35:
            return "install " + pick(['', '-m 644 ', '-D ', '-d ']) + _spelled(pick, 'a.txt') + " " + n()  # fmt: skip
        case 36:
            return "tar " + pick(['cf', 'czf']) + " out.tar" + pick(['', '.gz']) + " " + pick(['src', 'a.txt d', 'none', 'lnk'])  # fmt: skip
        case 37:
            return "tar cf t.tar " + pick(['src', 'a.txt', 'd/one']) + " && rm -r " + pick(['src', 'a.txt'])  # fmt: skip
        case 38:
            return "gzip " + pick(['', '-k ', '-f ', '-c ']) + _spelled(pick, pick(['a.txt', 'b.txt', 'none', 'src', 'flnk']))  # fmt: skip
        case 39:
            return "env " + pick(['', 'A=1 ', '-u x ']) + pick(['ls', 'touch env.new', 'cat a.txt'])  # fmt: skip
        case 40:
            return "timeout " + pick(['5', '-k 1 5']) + " " + pick(['touch t.new', 'cat b.txt', 'rm -f a.txt'])  # fmt: skip
        case 41:
            return "bash -c " + quote(pick(['echo hi > b.new', 'cd src && rm x.py', 'touch \"$0\" q', 'x=1; echo $x', 'for i in 1 2; do touch b$i; done']))  # fmt: skip
        case 42:
            return "sh -c " + quote(pick(['echo hi > s.new', 'cd src; rm y.py', '[ -f a.txt ] && rm a.txt', 'cat <b.txt']))  # fmt: skip
        case 43:
            return pick(["true", "false", ":", "exit 3", "pwd", "sleep 0", "set -e", "set -f", "date", "seq 2", "basename a/b", "true > tr.new", "export Y=1", "unset x", "((x=3))", "let x=2", "set -- a.txt b.txt", 'cat "$@"', "shift", "return 2>/dev/null", "shopt -s nullglob", "break", "set -o pipefail", "command ls", "eval 'touch ev.new'", ". ./list", "exec 3> fd.new", "echo x >&3", "readlink lnk", "mktemp -u"])  # fmt: skip
        case 44:
            return "A=1 " + pick(['ls', 'cat a.txt', 'touch as.new'])  # fmt: skip
        case 45:
            return pick(["find . -name '*.py' -print0 | xargs -0 rm", "grep -l a *.txt | xargs sed -i s/a/b/", "diff <(sort a.txt) <(cat b.txt)", "cat <(echo x) > ps.new", "grep -rl 1 src | xargs touch", "ls d | xargs -n1 echo", "find src -type f | sort | xargs cat", "cat list | xargs cat > all.new", "seq 2 | xargs touch", "ls | head -2 | xargs ls", "comm -12 <(sort a.txt) <(sort b.txt) > cm.new", "grep -rl --include='*.py' . src | xargs rm -f"])  # fmt: skip
        case _:
            return pick(['comm', 'paste', 'join', 'diff', 'diff -r', 'cmp']) + " " + p() + " " + p()  # fmt: skip


def _command(pick: Pick, depth: int) -> str:
    if depth <= 0 or pick(range(10)) < 6:
        return _simple(pick)
    inner = lambda: text(pick, depth - 1)  # noqa: E731
    # A here-document's lines have to follow, so that a newline closes what holds one.
    match pick(range(13)):
        case 0:
            return "( " + inner() + "\n)"  # fmt: skip
        case 1:
            return "{ " + inner() + "\n} " + pick(['', '> grp.new', '2>/dev/null', '>> a.txt', '< a.txt'])  # fmt: skip
        case 2:
            return "if " + inner() + "\nthen " + inner() + "\nfi"  # fmt: skip
        case 3:
            return "if " + inner() + "\nthen " + inner() + "\nelse " + inner() + "\nfi"  # fmt: skip
        case 4:
            return "for x in " + _places(pick) + "; do " + inner() + "\ndone"  # fmt: skip
        case 5:
            return "for x in 1 2; do " + inner() + "\n" + pick(['', 'break', 'continue', '[ $x = 1 ] && continue']) + "\ndone"  # fmt: skip
        case 6:
            return "i=0; while [ $i -lt 2 ]; do " + inner() + "\ni=$((i+1)); done"  # fmt: skip
        case 7:
            return "case " + pick(['$x', 'a.txt', '\"$x\"']) + " in " + pick(['a*', '1', '*.txt']) + ") " + inner() + "\n;; *) " + inner() + "\n;; esac"  # fmt: skip
        case 8:
            return "f() { " + inner() + "\n}; f " + _place(pick)  # fmt: skip
        case 9:
            return "! " + _command(pick, 0)  # fmt: skip
        case 10:
            return "echo $(" + inner() + "\n)"  # fmt: skip
        case 11:
            return "while read -r x; do " + inner() + "\ndone < list"  # fmt: skip
        case _:
            return "touch \"$(" + _simple(pick) + "\n)\""  # fmt: skip


def _piped(pick: Pick, depth: int) -> str:
    first = _command(pick, depth)
    if "<<" in first or pick(range(5)):
        return first
    tail = pick(["cat", "head -1", "grep a", "tee piped.new", "sort", "wc -l", "xargs -r echo", "xargs -r touch", "xargs rm -f", "sed s/a/b/ > sed.new", "while read -r x; do echo $x; done", "tail -1 > d/tail", "{ cat; touch in.new; }"])  # fmt: skip
    return first + " " + pick(['|', '|', '|&']) + " " + tail  # fmt: skip


def text(pick: Pick, depth: int = 2) -> str:
    """A text of a few commands."""
    out = _piped(pick, depth)
    for _ in range(pick([0, 0, 1, 1, 2])):
        following = _piped(pick, depth - 1)
        joint = pick([" && ", " || ", "; ", "\n"]) if "<<" not in out else "\n"
        out = f"{out}{joint}{following}"
    return out
