"""Which ref or revision does a text name, as git reads it?

- `kind: branch` (default): a name that git-check-ref-format(1) accepts below `refs/heads/`, and `git check-ref-format --branch`
  as it stands; a full object id is one too. `kind: revision`: gitrevisions(7) as well: `HEAD~1`, `v1^{commit}`, `a..b`,
  `rev:path`.
- Never a leading `-` (an option), never `@{` (it depends on the reflog and the clock), never a text search (`:/fix`,
  `^{/fix}`).
- Canonical is the text; a full object id is in lower case.

    >>> is_branch_name("feature/x"), is_branch_name("feature/x.lock"), is_branch_name("HEAD~1")
    (True, False, False)
"""

# ruff: noqa: ARG002  -- a type takes what its protocol hands it
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from cxi.canonical import JsonValue
from cxi.errors import Code, Refused
from cxi.values.base import EntryKind, Root, Span, Value
from cxi.values.hidden import refuse_unseen
from cxi.values.parameter import Parameters
from cxi.values.word import Word, words

RefKind: TypeAlias = Literal["branch", "revision"]

MAX_REF: Final = 1024
_FORBIDDEN: Final = frozenset(" ~^:?*[\\")
_OBJECT: Final = re.compile(r"[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64}")
_SUFFIX: Final = re.compile(r"~[0-9]{0,9}|\^(?:[0-9]{1,9}|\{(?:commit|tree|blob|tag|object)?\})?")
_CUES: Final = frozenset({"branch", "branches", "ref", "refs", "tag", "tags", "revision", "revisions"})
_NAMING: Final = frozenset({"named", "called"})
# What follows "branch" in a sentence without being its name.
_PROSE: Final = (
    "a after an and are as at be before but by can contains does exists for from has have if in into is it its must name "
    "names of off on or "
    "should so that the then this to using was when where which will with you"
)
_NOT_NAMES: Final = _CUES.union(_NAMING, _PROSE.split())


@dataclass(frozen=True, slots=True)
class GitRef:
    """A branch name, or any revision.

    Attributes:
        kind: Which.
    """

    kind: RefKind = "branch"
    name: str = "GitRef"

    def parse(self, raw: JsonValue, where: Root) -> Value | Refused:
        if not isinstance(raw, str):
            return _refuse("a ref is a string")
        if not raw or len(raw) > MAX_REF:
            return _refuse(f"a ref is not empty, and has {MAX_REF} characters at most")
        unseen = refuse_unseen(raw, "ref")
        if unseen is not None:
            return unseen
        if _OBJECT.fullmatch(raw):
            raw = raw.lower()
        elif raw.startswith("-") or "@{" in raw:
            return _refuse("a ref with a leading `-` or with `@{`")
        elif not (is_branch_name(raw) if self.kind == "branch" else _is_revision(raw)):
            return _refuse(f"`{raw}` is no {self.kind} (git-check-ref-format(1), gitrevisions(7))")
        return Value(self.name, raw, raw)

    def scan(self, text: str, where: Root) -> Iterator[tuple[Span, Value]]:
        """Quoted or backticked words that are no file, and the word after `branch`, `ref`, `tag` or `revision`."""
        cued = False
        for word in words(text):
            quoted = word.quoted and (cued or not _is_file(word, where))
            if quoted or (cued and not word.quoted and word.text.lower() not in _NOT_NAMES):
                value = self.parse(word.text, where)
                if isinstance(value, Value):
                    yield (word.start, word.end), value
            said = word.text.lower().rstrip(":")
            cued = not word.quoted and (said in _CUES or (cued and said in _NAMING))
            # "the branch. Then …": a sentence ends between the word and what follows
            cued = cued and text[word.end : word.end + 1] not in (".", "!", "?", ";", ",")


def make_git_ref(parameters: Mapping[str, JsonValue]) -> GitRef:
    """`GitRef {kind: branch|revision}`.

    Raises:
        BadParameter: for anything else.
    """
    given = Parameters("GitRef", parameters)
    given.only("kind")
    kinds: tuple[RefKind, ...] = ("branch", "revision")
    return GitRef(given.choice("kind", kinds))


def is_branch_name(name: str) -> bool:
    """Whether `git check-ref-format --branch` takes the name as it stands (git-check-ref-format(1))."""
    return _is_ref_name(name) and not name.startswith("-") and name not in ("HEAD", "@")


def _is_ref_name(name: str) -> bool:
    """Whether `refs/heads/<name>` is well formed."""
    if ".." in name or "@{" in name or name.endswith(".") or _FORBIDDEN.intersection(name):
        return False
    if any(char < " " or char == "\x7f" for char in name):
        return False
    return all(part and not part.startswith(".") and not part.endswith(".lock") for part in name.split("/"))


def _is_revision(text: str) -> bool:
    """Whether it is of one of the forms of gitrevisions(7) that name the same thing whenever the refs are the same."""
    name, colon, path = text.partition(":")
    if colon:
        return bool(path) and not path.startswith("/") and _is_one_revision(name)
    if ".." in text:
        left, _, right = text.partition("...") if "..." in text else text.partition("..")
        sides = [side for side in (left, right) if side]
        return bool(sides) and all(_is_one_revision(side) for side in sides)
    for suffix in ("^@", "^!"):
        text = text.removesuffix(suffix)
    return _is_one_revision(text.removeprefix("^"))


def _is_one_revision(text: str) -> bool:
    at = min((found for found in (text.find("~"), text.find("^")) if found >= 0), default=len(text))
    name = text[:at]
    while at < len(text):
        suffix = _SUFFIX.match(text, at)
        if suffix is None:
            return False
        at = suffix.end()
    return _is_ref_name(name) and not name.startswith("-")


def _is_file(word: Word, where: Root) -> bool:
    """Whether a quoted word is rather the name of a file or folder."""
    if word.text.startswith("/") or "\0" in word.text or len(word.text) > MAX_REF:
        return True
    path = f"{where.path.rstrip('/')}/{word.text.rstrip('/')}"
    return where.view.entry(path).kind is not EntryKind.ABSENT


def _refuse(detail: str) -> Refused:
    return Refused.of(Code.FIELD_TYPE, detail)
