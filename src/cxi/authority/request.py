"""What does the person's own text ask for, clause by clause?

- A clause gives authority to the values it names, unless it is `negated`, a `question`, `conditional`, `reported`, `quoted`,
  `fenced`, `forwarded`, `unread` (a language that is not read) or `undirected`: then it gives nothing. So does what is unsure.
- It must ask for something: it begins with a verb that does ("fix …", "please move …", "I'd like you to …", "b.py: update …"), or
  lists values under what does. Anything else (a statement, a label, a reminder) names and gives nothing: `undirected`.
- A subordinate clause ("… so that it does not crash", "… without breaking it") is a clause of its own, and asks for nothing.
- A sentence ends at `.`, `!`, `?` before a blank, at a blank line, at a list item, and before a line that begins with a capital.
- A clause ends with its sentence, at `;`, at `but`, and before a coordinator that a negation follows directly: "fix a.py and
  don't touch b.py" keeps its left side. No other `and`, `or` or comma ends a negation: "don't edit a.py, edit b.py instead" gives
  nothing.
- A question, a condition or reported speech takes its whole sentence; "could you (please) move …?" is no question.
- What is negated, conditional or a question and introduces a list ("do not touch:") takes the list with it; reported speech that
  ends in a colon takes the rest.
- "Look at a.py but don't change it" takes back a.py, and so does a later clause that negates the same value.
- A value alone in quotes is named; any longer quotation is shown, and what it holds is not.

    >>> [(clause.text, clause.affirmed) for clause in clauses("Fix a.py and don't touch b.py.")]
    [('Fix a.py', True), ("and don't touch b.py.", False)]
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from cxi.authority import cue
from cxi.authority.quotation import Region, mask, regions
from cxi.provenance import TrustedRequest
from cxi.values.base import Root, Span, Value, ValueType

MAX_TEXT: Final = 32_000  # code points of one segment that are read; the rest gives nothing
_SHOWN: Final = "\ufffc"  # stands for what is quoted: no word, no blank
_WORD: Final = re.compile(r"[^\s—–]+|[—–]")
_EDGE: Final = '.,;:!?…()[]{}<>"“”„«»‹›*_~|`¿¡\ufffc'
_MARKS: Final = "\"'`“”„‘’‚«»‹›「」『』 "
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+•‣–—]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]+(?:\[[ xX]?\][ \t]+)?")
_HEADING: Final = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]")
_TERMINATOR: Final = re.compile(r"[.!?。！？]+[)\]\"'”’»*_`\ufffc]*(?=\s|\Z)")
_BOUNDARY: Final = re.compile(r";(?=\s|\Z)")
_QUESTION: Final = re.compile(r"[?？](?=[\s)\]\"'”’»*_!.\ufffc]|\Z)|¿")
_OPEN_END: Final = re.compile(
    r"(?:[,:&(/–—-]|\b(?:and|or|the|a|an|to|in|of|for|with|from|und|oder|et|ou|y|o|e|en))\s*\Z", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"\s*\d")
_GOES_ON: Final = frozenset({"unless", "except", "otherwise", "but", "and", "or", "provided", "without", "instead", "nor"})


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a text.

    Attributes:
        text: Its exact text.
        span: Where it stands in the text.
        affirmed: Whether what it names has the request's authority.
        why: Why not: `negated`, `question`, `conditional`, `quoted`, `fenced`, `forwarded`, `reported` or `unread`; or empty.
        sentence: The index of its sentence; what is shown in a sentence has the sentence's.
        host: For a quotation inside a sentence, the index of the clause around it; else -1.
        holes: Where quotations stand in it.
    """

    text: str
    span: Span
    affirmed: bool
    why: str
    sentence: int
    host: int = -1
    holes: tuple[Span, ...] = ()

    @property
    def said(self) -> str:
        """Its text with what is only quoted blanked out; offsets stay."""
        start = self.span[0]
        return mask(self.text, [Region(hole[0] - start, hole[1] - start, "quoted") for hole in self.holes], " ")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that a request names.

    Attributes:
        value: The value.
        span: Where it stands in the segment's text.
        clause: The index of its clause.
        before: The words before it in its clause, lowercase, the nearest last; at most four.
        affirmed: Whether it has the request's authority.
        why: Why not, as for a clause.
        segment: The index of its segment in the request.
        joined: The text between the candidate before it in its clause and itself, where only a coordinator stands there.
    """

    value: Value
    span: Span
    clause: int
    before: tuple[str, ...]
    affirmed: bool
    why: str
    segment: int = 0
    joined: bool = False

    def follows(self, word: str) -> bool:
        """Whether it stands directly behind a word (or words), articles aside: `to the file docs/a.md` follows `to`."""
        wanted = tuple(word.lower().split())
        words = self.before
        while words:
            if words[-len(wanted) :] == wanted:
                return True
            if words[-1] not in cue.ARTICLES:
                return False
            words = words[:-1]
        return False


def named(request: TrustedRequest | None, types: Sequence[ValueType], root: Root) -> tuple[Candidate, ...]:
    """Every value of these types that a request names, segment by segment, those in clauses that give nothing included.

    A value that a later clause negates is taken back.
    """
    if request is None:
        return ()
    found: list[Candidate] = []
    for index, segment in enumerate(request.segments):
        found += (replace(item, segment=index) for item in candidates(clauses(segment.text), types, root))
    return _take_back(found)


def candidates(clauses: Sequence[Clause], types: Sequence[ValueType], root: Root) -> tuple[Candidate, ...]:
    """Every value of these types that clauses name, in order; those in clauses that give nothing say why."""
    found: list[Candidate] = []
    for index, clause in enumerate(clauses):
        if clause.host >= 0 and clause.why == "quoted" and clauses[clause.host].affirmed:
            whole = _whole_value(clause, types, root)
            if whole is not None:
                span, value = whole
                host = clauses[clause.host]
                before = _words_before(host.said[: clause.span[0] - host.span[0]])
                found.append(Candidate(value, span, clause.host, before, affirmed=True, why=""))
                continue
        found += _scan(clause, index, types, root)
    found.sort(key=lambda item: item.span)
    return _take_back(_mark_joined(found, clauses))


def _scan(clause: Clause, index: int, types: Sequence[ValueType], root: Root) -> Iterator[Candidate]:
    said = clause.said
    edges = {hole[0] for hole in clause.holes}, {hole[1] for hole in clause.holes}
    offset = clause.span[0]
    seen: set[tuple[Span, str, str]] = set()
    for reader in types:
        for (start, end), value in reader.scan(said, root):
            key = ((start, end), value.type, repr(value.canonical))
            # what is glued to a quotation is a part of something that cannot be seen whole
            if key in seen or offset + end in edges[0] or offset + start in edges[1]:
                continue
            seen.add(key)
            yield Candidate(
                value, (offset + start, offset + end), index, _words_before(said[:start]), clause.affirmed, clause.why
            )


def _whole_value(clause: Clause, types: Sequence[ValueType], root: Root) -> tuple[Span, Value] | None:
    """The one value that a quotation consists of, or None where it holds more, less or several."""
    found: dict[tuple[Span, str], tuple[Span, Value]] = {}
    for reader in types:
        for (start, end), value in reader.scan(clause.text, root):
            if clause.text[:start].strip(_MARKS) or clause.text[end:].strip(_MARKS):
                return None
            span = (clause.span[0] + start, clause.span[0] + end)
            found[span, value.type] = (span, value)
    return next(iter(found.values())) if len(found) == 1 else None


def _words_before(text: str) -> tuple[str, ...]:
    """The last words, lowercase; a value is one too, so that nothing reaches over it. Marks alone are none."""
    cut = text[-200:]
    words = [token.word or cut[token.start : token.end].strip(_EDGE + "'’‘#").lower() for token in _tokens(cut)]
    return tuple(word for word in words if word)[-4:]


def _mark_joined(found: Sequence[Candidate], clauses: Sequence[Clause]) -> list[Candidate]:
    """Note which candidates only a coordinator parts from the one before: `a.py, b.py and c.py`."""
    marked: list[Candidate] = []
    for index, item in enumerate(found):
        joined = False
        if index and found[index - 1].clause == item.clause and found[index - 1].span[1] <= item.span[0]:
            clause = clauses[item.clause]
            start = clause.span[0]
            between = clause.text[found[index - 1].span[1] - start : item.span[0] - start].strip(_MARKS + "#\t\n")
            words = between.replace(",", " ").replace("&", " ").split()
            joined = bool(between) and all(word.lower() in cue.COORDINATORS for word in words)
        marked.append(replace(item, joined=joined))
    return marked


def _take_back(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """A value that a later clause negates loses what an earlier one gave."""
    last: dict[tuple[str, str], tuple[int, int]] = {}
    for item in found:
        if item.why == "negated":
            last[_key(item.value)] = max(last.get(_key(item.value), (-1, -1)), (item.segment, item.span[0]))
    return tuple(
        replace(item, affirmed=False, why="negated")
        if item.affirmed and last.get(_key(item.value), (-1, -1)) > (item.segment, item.span[0])
        else item
        for item in found
    )


def _key(value: Value) -> tuple[str, str]:
    return value.type, repr(value.canonical)


def fragments(clause: Clause) -> tuple[Span, ...]:
    """The parts of a clause between coordinators (`and`, `or`, `then`, a comma, a line end), as spans of the text."""
    said, offset = clause.said, clause.span[0]
    cuts = [0]
    for token in _tokens(said):
        if token.word in cue.COORDINATORS or token.word == "plus":
            cuts.append(token.start)
        if said[token.end - 1] in ",;" or said[token.start] == "(" or token.word == "/":
            cuts.append(token.end if said[token.start] != "(" else token.start)
    cuts += [match.end() for match in re.finditer(r"\n", said)]
    ends = [*sorted(cuts)[1:], len(said)]
    return tuple((offset + start, offset + end) for start, end in zip(sorted(cuts), ends, strict=True) if start < end)


# --- clauses ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    word: str  # lowercase, without the punctuation around it; empty where it is no plain word


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for match in _WORD.finditer(text):
        bare = unicodedata.normalize("NFKC", match.group().strip(_EDGE))
        bare = "".join(char for char in bare if unicodedata.category(char) != "Cf").lower().replace("’", "'").strip("'")
        plain = bare if bare == "&" or (bare[:1].isalpha() and all(char.isalpha() or char in "'-." for char in bare)) else ""
        if "." in plain and plain not in cue.ABBREVIATIONS:
            plain = ""
        found.append(_Token(match.start(), match.end(), plain))
    return found


@dataclass(slots=True)
class _Unit:
    """A paragraph, a list item or a heading."""

    start: int
    end: int
    kind: str  # "text", "item" or "heading"
    indent: int
    level: int = 0
    why: str = ""  # what its last clause gives nothing for
    ends: str = ""  # its last sign that is no blank
    asks: bool = False  # whether it asks for something


@lru_cache(maxsize=64)
def clauses(text: str) -> tuple[Clause, ...]:
    """Read a text clause by clause; pure, and never raises for any text.

    Args:
        text: A segment of the trusted request.

    Returns:
        The clauses in order; a quotation inside a sentence follows the clause that holds it.
    """
    read = text[:MAX_TEXT]
    shown = list(regions(read))
    if len(text) > MAX_TEXT:
        shown.append(Region(MAX_TEXT, len(text), "fenced", closed=False))
    blocks = [region for region in shown if not region.inline]
    inline = [region for region in shown if region.inline]
    parsed = mask(mask(read, blocks, "\n"), inline, _SHOWN)
    found: list[Clause] = []
    sentence = 0
    previous: list[_Unit] = []
    rest = ""
    for unit in _units(parsed):
        given = rest or _inherited(unit, previous, parsed)
        own: list[Clause] = []
        for start, end in _sentences(parsed, unit):
            own += _split(text, parsed, start, end, sentence, given, inline, introduced=_is_introduced(unit, previous))
            if any(clause.why == "quoted" for clause in own):
                given = "quoted"  # text to be carried has begun; where it ends, nothing says
            given = given if rest or given in ("reported", "quoted") else _carried(given, own, parsed, end, unit)
            if any(token.word == "follows" for token in _tokens(parsed[start:end])):
                given = rest = "reported"  # "log output follows."
            sentence += 1
        unit.why = own[-1].why if own else given
        unit.asks = any(clause.affirmed for clause in own)
        unit.ends = parsed[unit.start : unit.end].rstrip(" \t\n*_`\ufffc")[-1:]
        # No later unit asks an item's siblings before it, a paragraph before the last, nor anything above a heading.
        if unit.kind == "heading":
            previous.clear()
        elif unit.kind == "text":
            del previous[1 if previous and previous[0].kind == "heading" else 0 :]
        while unit.kind == "item" and previous and previous[-1].kind == "item" and previous[-1].indent >= unit.indent:
            previous.pop()
        previous.append(unit)
        if any(clause.why == "reported" for clause in own) and unit.ends == ":":
            rest = "reported"
        elif unit.ends == ":" and any(token.word in cue.CONTENT for token in _tokens(parsed[unit.start : unit.end])[-1:]):
            rest = "quoted"
        found += own
    found = _refer_back(found, parsed)
    return _with_shown(text, found, blocks, inline, sentence)


def _units(parsed: str) -> Iterator[_Unit]:
    unit: _Unit | None = None
    at = 0
    for line in parsed.splitlines(keepends=True):
        end = at + len(line)
        heading, item = _HEADING.match(line), _ITEM.match(line)
        if not line.strip() or heading or item:
            if unit is not None:
                yield unit
            unit = None
        if heading:
            yield _Unit(at + heading.end(), end, "heading", 0, len(heading[1]))
        elif line.strip():
            if unit is None:
                indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
                unit = _Unit(at + (item.end() if item else 0), end, "item" if item else "text", indent)
            unit.end = end
        at = end
    if unit is not None:
        yield unit


def _inherited(unit: _Unit, previous: list[_Unit], parsed: str) -> str:
    """Why a unit gives nothing because of what introduces it."""
    for other in reversed(previous):
        if other.kind == "heading" and unit.kind != "heading":
            words = [token.word for token in _tokens(parsed[other.start : other.end]) if token.word]
            if other.why and not (other.why == "undirected" and all(word in cue.LABELS for word in words)):
                return other.why
            break
    if unit.kind == "heading" or not previous:
        return ""
    last = previous[-1]
    if unit.kind == "text":
        lone = not any(token.word and token.word not in cue.COORDINATORS for token in _tokens(parsed[unit.start : unit.end]))
        goes_on = last.ends == ":" or (last.kind == "item" and unit.indent > last.indent) or (lone and last.ends not in ".!")
        return last.why if goes_on else ""
    for other in reversed(previous):
        if other.kind == "item" and other.indent >= unit.indent:
            continue
        return "" if other.ends in tuple(".!;") else other.why
    return ""


def _is_introduced(unit: _Unit, previous: list[_Unit]) -> bool:
    """Whether what stands before a unit asks for what it lists: "Update these files:"."""
    for other in reversed(previous):
        if unit.kind == "item" and other.kind == "item" and other.indent >= unit.indent:
            continue
        return other.asks and (unit.kind == "item" or other.ends == ":")
    return False


def _sentences(parsed: str, unit: _Unit) -> Iterator[Span]:
    """The sentences of a unit."""
    start = unit.start
    cuts = [
        match.end()
        for match in _TERMINATOR.finditer(parsed, unit.start, unit.end)
        if not _is_abbreviation(parsed, match.start(), match.group(), unit.start)
    ]
    for match in re.finditer(r"\n", parsed[unit.start : unit.end]):
        at = unit.start + match.end()
        following = parsed[at : unit.end].lstrip(" \t*_")
        goes_on = any(token.word in _GOES_ON for token in _tokens(following[:40])[:1])
        if following[:1].isupper() and not goes_on and not _OPEN_END.search(parsed[start:at].rstrip()):
            cuts.append(at)
    for cut in sorted({*cuts, unit.end}):
        if parsed[start:cut].strip():
            yield start, cut
        start = max(start, cut)


def _is_abbreviation(parsed: str, at: int, marks: str, floor: int) -> bool:
    """Whether a dot ends a word and not a sentence; two dots or more never end one."""
    dots = marks.rstrip(")]\"'”’»*_`\ufffc")
    if len(dots) > 1 and set(dots) == {"."}:
        return True
    if dots != ".":
        # a bracket that opened in the sentence goes on behind it: "(why?) and"
        return marks.endswith((")", "]")) and parsed[at + len(marks) :].lstrip()[:1].islower()
    begin = at
    while begin > floor and not parsed[begin - 1].isspace():
        begin -= 1
    word = parsed[begin:at].lstrip("([{\"'“‘«*_").lower()
    return word in cue.ABBREVIATIONS or re.fullmatch(r"(?:[^\W\d_]\.)*[^\W\d_]", word) is not None


def _carried(given: str, own: list[Clause], parsed: str, end: int, unit: _Unit) -> str:
    """A line that gives nothing and ends without a sign takes the next line of its paragraph with it."""
    if not own:
        return given
    ends = parsed[own[0].span[0] : end].rstrip(" \t\n*_`\ufffc")[-1:]
    if own[-1].why == "quoted" and given == "quoted":
        return given
    if given and unit.kind == "text" and ends not in tuple(".!?"):
        return given
    return own[-1].why if own[-1].why and ends not in tuple(".!?;。！？") else ""


def _split(
    text: str, parsed: str, start: int, end: int, sentence: int, given: str, inline: Sequence[Region], *, introduced: bool
) -> Iterator[Clause]:
    """The clauses of one sentence."""
    said = parsed[start:end]
    tokens = _tokens(said)
    # An introduction that is not read says nothing of a sentence that has words of its own.
    given = "" if given == "unread" and any(token.word for token in tokens) else given
    whole = given or _judge_sentence(said, tokens)
    content = _content(said, tokens)
    asked = introduced
    for left, right, negated in _cut(said, tokens):
        directed = _directs(said, _within(tokens, left, right), asked=asked)
        asked = directed and not negated
        for part_left, part_right, carried in _before_content(left, right, content):
            part = said[part_left:part_right]
            lead = len(part) - len(part.lstrip())
            a, b = start + part_left + lead, start + part_left + len(part.rstrip())
            if a >= b:
                continue
            why = "quoted" if carried else "negated" if negated else whole or ("" if directed else "undirected")
            holes = tuple((r.start, r.end) for r in inline if r.why != "name" and r.start < b and r.end > a)
            yield Clause(text[a:b], (a, b), not why, why, sentence, holes=holes)


def _before_content(left: int, right: int, content: int) -> Iterator[tuple[int, int, bool]]:
    if content <= left:
        yield left, right, True
    elif content >= right:
        yield left, right, False
    else:
        yield left, content, False
        yield content, right, True


def _content(said: str, tokens: list[_Token]) -> int:
    """Where text to be carried begins: "with the message: …"."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.word in cue.CONTENT and said[: token.end].endswith(":"):
            return token.end
        if token.word in cue.CONTENT and after is not None and after.word in ("is", "reads", "says", "ist", "est", "es"):
            return after.end
    return len(said)


# --- sentences that give nothing


def _judge_sentence(said: str, tokens: list[_Token]) -> str:
    words = [token.word for token in tokens]
    if any(word in cue.REPORTS for word in words) or _has(words, cue.REPORT_PHRASES):
        return "reported"
    if _is_question(said, tokens, words):
        return "question"
    # A condition of a subordinate clause is that clause's own: "fix the bug that occurs when x is None".
    main = next((index + 2 for index in range(1, len(words)) if _subordinates(words, index)), len(words))
    if _is_conditional(said, tokens[:main], words[:main]):
        return "conditional"
    if not _is_read(words):
        return "unread"
    return ""


def _subordinates(words: list[str], index: int) -> bool:
    """Whether a clause of its own begins here: "… so that it compiles", "… without breaking it", "… to avoid a crash"."""
    word, after = words[index], words[index + 1] if index + 1 < len(words) else ""
    if word == "without":
        return after.endswith("ing") and len(after) >= 5
    if word == "to":
        return after in cue.AVERTED
    if word not in cue.SUBORDINATORS or words[index - 1] in ("sure", "and", "or", "even", "do", "not"):
        return False
    return not any(_at(words, at, cue.CONDITION_PHRASES) > index - at for at in range(max(0, index - 3), index + 1))


def _directs(said: str, tokens: list[_Token], *, asked: bool) -> bool:
    """Whether a clause asks for something: it begins with a verb that does, or with what leads to one.

    A clause of values alone goes on with what was asked: a list item under "Update these:", "; and b.py".
    """
    words = [token.word for token in tokens]
    at, last = 0, _last(words, lambda index: bool(words[index]))
    while at < len(words):
        word, shown = words[at], said[tokens[at].start : tokens[at].end]
        wish = _at(words, at, cue.WISHES)
        if wish:
            rest = words[at + wish :]
            return words[at] == "make" or any(word in cue.IMPERATIVES or word in cue.DONE for word in rest)
        if _at(words, at, cue.POLITE_OPENERS):
            return True
        if word in cue.IMPERATIVES:
            return True
        if word in cue.PLACES:
            comma = next((i for i in range(at + 1, len(words)) if said[: tokens[i].end].endswith(",")), None)
            named = comma is not None and any(_is_value(said, token) for token in tokens[at + 1 : comma + 1])
            if comma is None or not named:
                return False
            at = comma + 1
        elif word in cue.LEADERS or (word in cue.LABELS and shown.rstrip("*_").endswith(":")):
            at += 1
        elif _is_value(said, tokens[at]) and (shown.endswith(":") or last < at):
            if last < at:
                return asked and all(_is_value(said, token) or _is_mark(said, token) for token in tokens[at:])
            at += 1
        else:
            return False
    return False


def _is_value(said: str, token: _Token) -> bool:
    shown = said[token.start : token.end]
    return not token.word and shown[0] not in "@<" and (_SHOWN in shown or any(char.isalnum() for char in shown))


def _is_mark(said: str, token: _Token) -> bool:
    """Whether a token is punctuation that joins values, and no sign that could strike one out."""
    return token.word in cue.COORDINATORS or said[token.start : token.end].strip(",;&+*-–—()") == ""


def _is_read(words: list[str]) -> bool:
    """Whether a sentence is in a language whose negation is known; one of values alone says what its introduction says."""
    plain = [word for word in words if word and word != "&"]
    if any(not unicodedata.name(char, "").startswith("LATIN") for word in plain for char in word if char.isalpha()):
        return False
    return not plain or any(word in cue.READ or word in cue.NEGATORS for word in plain)


def _has(words: Sequence[str], phrases: frozenset[tuple[str, ...]]) -> bool:
    return any(_at(words, index, phrases) for index in range(len(words)))


def _at(words: Sequence[str], index: int, phrases: frozenset[tuple[str, ...]]) -> int:
    """The length of a phrase that stands at a place, or 0."""
    for length in (4, 3, 2, 1):
        if tuple(words[index : index + length]) in phrases and index + length <= len(words):
            return length
    return 0


def _is_question(said: str, tokens: list[_Token], words: list[str]) -> bool:
    marked = _QUESTION.search(said) is not None
    first = 0
    while first < len(words) and words[first] in cue.POLITE:
        first += 1
    polite = first > 0 and words[first - 1] in ("please", "kindly", "bitte")
    rest = words[first:]
    length = _at(rest, 0, cue.POLITE_OPENERS)
    if length:
        after = [word for word in rest[length : length + 6] if word not in cue.POLITE]
        # in English the verb comes next; elsewhere a value may: "Kannst du b.py ändern?"
        errand = bool(after) and after[0] not in cue.NO_ERRAND and (after[0] != "" or rest[0] not in cue.MODALS)
        return not errand or _asks_more(words[first + length :])
    if rest[:1] and (rest[0] in cue.INTERROGATIVES or (rest[0] in cue.MODALS and len(rest) > 1 and rest[1] in cue.ASKED_OF)):
        return True
    if marked:
        return not polite or _asks_more(rest) or len(tokens) == first
    return False


def _asks_more(words: Sequence[str]) -> bool:
    """Whether another question hangs on a polite request: "… or should we drop it?"."""
    for before, word, after in zip(words, words[1:], [*words[2:], ""], strict=False):
        if before not in ("and", "or", "but", "oder", "und", "ou", "et", "y", "o", "e"):
            continue
        if word in cue.INTERROGATIVES or (word in cue.MODALS and after in cue.ASKED_OF):
            return True
    return False


def _is_conditional(said: str, tokens: list[_Token], words: list[str]) -> bool:
    if any(word in cue.CONDITIONS for word in words) or _has(words, cue.CONDITION_PHRASES):
        return True
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        after = words[index + 1] if index + 1 < len(words) else ""
        ends = said[tokens[index].end - 1] in ",.;:!?)"
        if word == "falls" and (index == 0 or said[tokens[index - 1].end - 1] == ","):
            return True  # German; in English something falls
        if word == "once" and after and not ends and before != "at" and after not in cue.ONE_TIME:
            return True
        if word == "provided" and not ends and before not in cue.NOMINAL and before not in cue.GIVERS:
            return True
        if word in ("after", "nachdem", "después", "dopo", "depois", "nadat") and _is_subordinate(words[index + 1 :]):
            return True
    return False


def _is_subordinate(following: list[str]) -> bool:
    """Whether `after` begins a clause ("after the tests pass") and not a phrase ("after the header")."""
    if not following:
        return False
    return following[0] in cue.SUBJECTS or any(word in cue.PREDICATES for word in following[1:5])


# --- negation


@dataclass(frozen=True, slots=True)
class _Negator:
    index: int  # its first token
    keeps_left: bool  # whether a coordinator before it may leave the left side as it is


def _negators(words: list[str], tokens: list[_Token], said: str) -> list[_Negator]:
    found: list[_Negator] = []
    closer = _last(words, lambda index: words[index] in cue.LEFT or bool(_at(words, index, cue.LEFT_PHRASES)))
    for index, word in enumerate(words):
        token = tokens[index]
        if word == "no" and said[token.end - 1] == "." and _NUMBER.match(said, token.end):
            continue  # "no. 5"
        plain = word in cue.NEGATORS or word.endswith("n't") or word.startswith("n'")
        if word in cue.EXCEPTIONS or _at(words, index, cue.EXCEPTION_PHRASES):
            found.append(_Negator(index, keeps_left=False))
        elif plain or _at(words, index, cue.NEGATED_PHRASES) or (word in cue.LEAVE and index < closer):
            found.append(_Negator(index, keeps_left=True))
        elif word in ("but", "save", "bar") and index and words[index - 1] in cue.UNIVERSALS:
            found.append(_Negator(index, keeps_left=False))
    return found


def _last(words: list[str], holds: Callable[[int], bool]) -> int:
    """The last place where something holds, or -1."""
    return next((index for index in range(len(words) - 1, -1, -1) if holds(index)), -1)


def _first_universal(words: list[str]) -> int:
    """Where "all", "every" and the like first stand; behind the end where they do not."""
    return next((index for index, word in enumerate(words) if word in cue.UNIVERSALS), len(words))


def _within(tokens: list[_Token], start: int, end: int) -> list[_Token]:
    """The tokens between two offsets; tokens stand in order."""
    left = bisect_left(tokens, start, key=lambda token: token.start)
    right = bisect_right(tokens, end, key=lambda token: token.end)
    return tokens[left:right]


def _cut(said: str, tokens: list[_Token]) -> Iterator[tuple[int, int, bool]]:
    """(start, end, negated) of each clause of a sentence, by offsets into it."""
    words = [token.word for token in tokens]
    bounds = [0, *(match.end() for match in _BOUNDARY.finditer(said)), len(said)]
    universal = _first_universal(words)
    for index, token in enumerate(tokens):
        if index and ((token.word in cue.BUT and not _is_exceptive(words, index, universal)) or _subordinates(words, index)):
            bounds.append(token.start)
    bounds = sorted(set(bounds))
    for start, end in pairwise(bounds):
        yield from _cut_negated(said, _within(tokens, start, end), start, end)


def _is_exceptive(words: list[str], index: int, universal: int) -> bool:
    """Whether a `but` takes out: "all files but a.py"; `universal` is where the first "all" stands."""
    after = words[index + 1] if index + 1 < len(words) else ""
    goes_on = (
        after in cue.NEGATORS
        or after.endswith("n't")
        or after in cue.FILLERS
        or after in cue.LEAVE
        or after in ("only", "make", "keep", "fix", "first", "use", "add", "run", "it", "then")
    )
    return not goes_on and universal < index


def _cut_negated(said: str, tokens: list[_Token], start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Part a clause before the first negation that a coordinator introduces; everything else negates both sides."""
    words = [token.word for token in tokens]
    universal = _first_universal(words)
    exceptive = any(word in cue.BUT and index and _is_exceptive(words, index, universal) for index, word in enumerate(words))
    negators = _negators(words, tokens, said)
    if not negators and not exceptive:
        yield start, end, False
        return
    first = negators[0] if negators and not exceptive else None
    cut = _coordinator(said, tokens, first.index) if first is not None and first.keeps_left else None
    if cut is None or not _is_errand(words[: cut[1]]):
        yield start, end, True
        return
    yield start, cut[0], False
    yield cut[0], end, True


def _coordinator(said: str, tokens: list[_Token], negator: int) -> tuple[int, int] | None:
    """(offset, token index) where a coordinator that a negation follows directly begins, or None."""
    at = negator
    while at > 0:
        token, before = tokens[at], tokens[at - 1]
        between = said[before.end : token.start]
        if said[token.start] == "(" or "\n" in between:
            return token.start, at
        if said[before.end - 1] == ",":
            return before.end, at
        sign = said[before.start : before.end].strip()
        if before.word in cue.COORDINATORS or sign in ("-", "–", "—", "--", "&", "/"):
            begin = at - 1
            while begin > 0 and tokens[begin - 1].word in cue.COORDINATORS:
                begin -= 1
            return (tokens[begin].start, begin) if begin > 0 else None
        if before.word not in cue.FILLERS:
            return None
        at -= 1
    return None


def _is_errand(words: list[str]) -> bool:
    """Whether a left side asks for something by itself: it begins with a word that can be a verb, not with a thing."""
    for index, word in enumerate(words):
        if word in cue.POLITE or word in cue.COORDINATORS:
            continue
        return bool(word) and word not in cue.NOMINAL and len(words) - index > 1
    return False


def _refer_back(found: list[Clause], parsed: str) -> list[Clause]:
    """Take back what the clause before gave: "… but don't change it"."""
    out = list(found)
    for index in range(1, len(out)):
        if out[index].why != "negated" or not out[index - 1].affirmed:
            continue
        tokens = _tokens(parsed[out[index].span[0] : out[index].span[1]])
        words = [token.word for token in tokens]
        for at, word in enumerate(words):
            if word not in cue.ACTS:
                continue
            after = words[at + 1 : at + 3]
            thing = len(after) > 1 and after[0] in ("the", "this", "that", "these", "those") and after[1] in cue.THINGS
            if not after or after[0] in cue.PRONOUNS or thing:
                out[index - 1] = replace(out[index - 1], affirmed=False, why="negated")
                break
    return out


def _with_shown(
    text: str, found: list[Clause], blocks: Iterable[Region], inline: Iterable[Region], sentence: int
) -> tuple[Clause, ...]:
    """Put what is shown among what is said, in order, and say which clause holds which quotation."""
    entries: list[tuple[int, int, Clause, Span | None]] = [(clause.span[0], 0, clause, None) for clause in found]
    for region in blocks:
        whole = text[region.start : region.end]
        if whole.strip():
            span = (region.start, region.start + len(whole.rstrip()))
            entries.append((region.start, 1, Clause(text[span[0] : span[1]], span, False, region.why, sentence), None))
            sentence += 1
    for region in inline:
        if region.why != "name":
            span = (region.start, region.end)
            host = next((clause for clause in found if clause.span[0] <= span[0] < clause.span[1]), None)
            number = host.sentence if host is not None else sentence
            quotation = Clause(text[span[0] : span[1]], span, False, "quoted", number)
            entries.append((span[0], 1, quotation, host.span if host is not None and region.closed else None))
    entries.sort(key=lambda entry: (entry[0], entry[1]))
    places = {clause.span: index for index, (_, kind, clause, _) in enumerate(entries) if kind == 0}
    return tuple(clause if host is None else replace(clause, host=places[host]) for _, _, clause, host in entries)
