"""Which parts of a person's text are their own words, and which do they only show?

- Shown, in blocks: fenced and indented code, `>` quotes with their lazy continuation, text between a pair of tags, HTML comments,
  a pasted transcript, and forwarded or replied mail: everything from its first line on.
- Shown as well: what a program printed (a stack trace, a dated or levelled log line, a diff, a prompt), to the next blank line.
- Shown, in a line: what stands in quotes, backticks or `~~`. One word alone in quotes or backticks is no quotation but a `name`.
- A mark that opens and never closes, or closes badly, opens a quotation to the end: which words it covers cannot be told.
- Apostrophes inside a word open nothing.

    >>> [(text[r.start:r.end], r.why) for text in ['Fix `a.py`, not "the b.py file"'] for r in regions(text)]
    [('`a.py`', 'name'), ('"the b.py file"', 'quoted')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Region:
    """A part that is shown, not said.

    Attributes:
        start: Where it begins, in code points, marks included.
        end: Where it ends.
        why: `fenced`, `quoted`, `forwarded`, or `name` for one word in quotes.
        inline: Whether it stands inside a sentence.
        closed: Whether its end was marked.
    """

    start: int
    end: int
    why: str
    inline: bool = False
    closed: bool = True


_FENCE: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(`{3,}|~{3,})(.*)", re.DOTALL)
_QUOTE: Final = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?>")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+•‣]|\d{1,3}[.)])[ \t]")
_TAG: Final = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,63})(?:\s[^<>]{0,500})?(?<!/)>")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

_SEPARATOR: Final = (
    r"original message|forwarded message|begin forwarded message|forwarded by|original-nachricht|ursprüngliche nachricht"
    r"|weitergeleitete nachricht|message d'origine|message original|message transféré|message suivi|mensaje original"
    r"|mensaje reenviado|messaggio originale|messaggio inoltrato|mensagem original|mensagem encaminhada"
    r"|oorspronkelijk bericht|doorgestuurd bericht"
)
_WROTE: Final = (
    r"(?:on|am|le|el|il|em|op|a)\b.{0,300}?\b(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef)\b.{0,200}?:"
)
_FORWARD: Final = re.compile(
    rf"(?:[-_=*—– ]{{2,}}\s*)?(?:{_SEPARATOR})\b\s*:?\s*[-_=*—– ]*|(?:fwd?|re|aw|wg|tr|rv)\s*:.*", re.IGNORECASE
)
_WROTE_LINE: Final = re.compile(_WROTE, re.IGNORECASE | re.DOTALL)
# One of these lines alone is the head of a mail; any two header lines together are.
_HEAD: Final = re.compile(
    r"(?:from|sent|subject|von|gesendet|betreff|de|objet|asunto|da|oggetto|assunto|van|onderwerp)\s*:", re.IGNORECASE
)
_HEADER: Final = re.compile(
    r"(?:from|sent|subject|to|cc|bcc|date|reply-to|message-id|von|gesendet|betreff|an|datum|de|objet|à|para|asunto|fecha|da|a|oggetto"
    r"|data|assunto|van|aan|onderwerp)\s*:",
    re.IGNORECASE,
)
_TURN: Final = re.compile(r"[\[<(|]*(?:system|assistant|user|human|ai|tool|model)[\]>)|]*\s*:", re.IGNORECASE)

_PRINTED: Final = re.compile(
    r"[ \t]*(?:Traceback \(most recent call last\)|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|File \".{1,500}\", line \d"
    r"|\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL|FAILED)\b|[A-Za-z_.]{1,80}(?:Error|Exception): "
    r"|at .{1,200}\(.{1,200}:\d{1,9}\)|[$%] \S|diff --git |@@ -\d|\+\+\+ |>>> )"
)

_PAIRS: Final = MappingProxyType(
    {"“": "”", "„": "“”", "‟": "”", "«": "»", "»": "«", "‹": "›", "›": "‹", "「": "」", "『": "』", "‘": "’", "‚": "‘’"}
)
_OPENS_AFTER: Final = frozenset("([{<=:,;/|*_~>—–-¿¡“‘«`\"'")
_CLOSES_BEFORE: Final = frozenset(")]}>.,;:!?…/|*_~—–-”’»`\"'")


def regions(text: str) -> tuple[Region, ...]:
    """Every part of a text that is shown or is a name in quotes, in order and not overlapping."""
    found: list[Region] = []
    masked = text
    for read in (_fences, _block_quotes, _tags, _forwarded, _indented, _printed):
        new = list(read(masked))
        found += new
        masked = mask(masked, new, "\n")
    inline = _inline(masked)
    # a quotation that runs over blocks, because it never closes, holds them
    found = [block for block in found if not any(span.start <= block.start and block.end <= span.end for span in inline)]
    return tuple(sorted((*found, *inline), key=lambda region: region.start))


def mask(text: str, found: list[Region] | tuple[Region, ...], filler: str) -> str:
    """The text with these parts overwritten; offsets stay."""
    if not found:
        return text
    out: list[str] = []
    at = 0
    for region in sorted(found, key=lambda region: region.start):
        if region.end <= at:
            continue
        start = max(region.start, at)
        out += [text[at:start], filler * (region.end - start)]
        at = region.end
    out.append(text[at:])
    return "".join(out)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str  # without its line end

    @property
    def blank(self) -> bool:
        return not self.text.strip()


def _lines(text: str) -> list[_Line]:
    found: list[_Line] = []
    at = 0
    for whole in text.splitlines(keepends=True):
        found.append(_Line(at, at + len(whole), whole.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")))
        at += len(whole)
    return found


def _fences(text: str) -> Iterator[Region]:
    """Fenced code (CommonMark 0.31, section 4.5), at any indentation; one that never closes goes to the end."""
    opened: tuple[int, str] | None = None
    for line in _lines(text):
        match = _FENCE.match(line.text)
        if match is None:
            continue
        marks, info = match[1], match[2]
        if opened is None:
            if marks[0] == "`" and "`" in info:
                continue  # a code span of three backticks; the inline reader sees to it
            opened = (line.start, marks)
        elif marks[0] == opened[1][0] and len(marks) >= len(opened[1]) and not info.strip():
            yield Region(opened[0], line.end, "fenced")
            opened = None
    if opened is not None:
        yield Region(opened[0], len(text), "fenced", closed=False)


def _block_quotes(text: str) -> Iterator[Region]:
    """`>` quotes; a line that follows without a blank one between continues them (CommonMark 0.31, section 5.1)."""
    start = -1
    end = 0
    for line in _lines(text):
        if start < 0 and _QUOTE.match(line.text):
            start = line.start
        elif start >= 0 and line.blank:
            yield Region(start, end, "quoted")
            start = -1
        end = line.end
    if start >= 0:
        yield Region(start, end, "quoted")


def _tags(text: str) -> Iterator[Region]:
    """What stands between `<tag>` and `</tag>`; a tag alone on its line that never closes goes to the end."""
    at = 0
    comments = [(match.start(), match.end()) for match in _COMMENT.finditer(text)]
    yield from (Region(start, end, "quoted") for start, end in comments)
    tags = [tag for tag in _TAG.finditer(text) if not any(start <= tag.start() < end for start, end in comments)]
    for index, tag in enumerate(tags):
        if tag.start() < at or tag[1]:
            continue
        depth, end = 1, -1
        for other in tags[index + 1 :]:
            if other[2].lower() == tag[2].lower():
                depth += -1 if other[1] else 1
                if depth == 0:
                    end = other.end()
                    inner = text[tag.end() : other.start()]
                    break
        else:
            inner = ""
            if _alone(text, tag.start(), tag.end()):
                end = len(text)
                inner = text[tag.end() :]
        if end > 0 and len(inner.split()) > 1:
            yield Region(tag.start(), end, "quoted", closed=end < len(text))
            at = end


def _alone(text: str, start: int, end: int) -> bool:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    after = text[end:].partition("\n")[0]
    return not before.strip() and not after.strip()


def _forwarded(text: str) -> Iterator[Region]:
    """Forwarded or replied mail and pasted turns: from their first line to the end."""
    lines = _lines(text)
    bare = [line.text.strip().lstrip("*_> \t").replace("**", "").replace("’", "'") for line in lines]
    for index, line in enumerate(lines):
        here = bare[index]
        following = bare[index + 1] if index + 1 < len(lines) else ""
        if (
            _FORWARD.fullmatch(here)
            or _WROTE_LINE.fullmatch(here)
            or (following and _WROTE_LINE.fullmatch(f"{here}\n{following}") and ":" not in here.rstrip(":"))
            or _HEAD.match(here)
            or _TURN.match(here)
            or (_HEADER.match(here) and _HEADER.match(following))
        ):
            yield Region(line.start, len(text), "forwarded")
            return


def _indented(text: str) -> Iterator[Region]:
    """Indented code (CommonMark 0.31, section 4.4), measured from the least indented line; it cannot interrupt a paragraph."""
    lines = _lines(text)
    widths = [len(line.text.expandtabs(4)) - len(line.text.expandtabs(4).lstrip()) for line in lines if not line.blank]
    least = min(widths, default=0)
    previous_blank, in_list, start, end = True, False, -1, 0
    for line in lines:
        if line.blank:
            previous_blank = True
            continue
        spread = line.text.expandtabs(4)
        width = len(spread) - len(spread.lstrip()) - least
        is_item = _ITEM.match(line.text) is not None
        in_list = is_item or (in_list and width > 0)
        if width >= 4 and not in_list and (previous_blank or start >= 0):
            start = line.start if start < 0 else start
            end = line.end
        elif start >= 0:
            yield Region(start, end, "fenced")
            start = -1
        previous_blank = False
    if start >= 0:
        yield Region(start, end, "fenced")


def _printed(text: str) -> Iterator[Region]:
    """What a program printed, from a line that looks like it to the next blank line."""
    start, end = -1, 0
    for line in _lines(text):
        if start >= 0 and line.blank:
            yield Region(start, end, "fenced")
            start = -1
        elif start < 0 and _PRINTED.match(line.text):
            start = line.start
        end = line.end
    if start >= 0:
        yield Region(start, end, "fenced")


def _inline(text: str) -> list[Region]:
    """Quotes, backticks and struck text, left to right; the first mark that opens wins."""
    found: list[Region] = []
    at = 0
    for match in re.finditer(r"`+|\"{3}|~~+|[\"'“„‟«»‹›「『‘‚]", text):
        start = match.start()
        if start < at:
            continue
        region = _open(text, start, match.group())
        if region is not None:
            found.append(region)
            at = region.end
    return found


def _open(text: str, start: int, mark: str) -> Region | None:
    """The region that a mark opens, or None where it opens nothing."""
    if mark[0] == "`":
        return _ticked(text, start, mark)
    if mark == '"""' or mark.startswith("~~"):
        end = text.find(mark, start + len(mark))
        return _close(text, start, end + len(mark), len(mark), shown=True) if end >= 0 else _unclosed(text, start)
    if mark == '"':
        return _straight(text, start)
    if mark in "'‘‚":
        return _single(text, start, mark)
    depth = 1
    for at in range(start + 1, len(text)):
        if text[at] in _PAIRS[mark]:
            depth -= 1
            if depth == 0:
                return _close(text, start, at + 1, 1)
        elif text[at] == mark:
            depth += 1
    return _unclosed(text, start)


def _ticked(text: str, start: int, mark: str) -> Region:
    """A code span: it closes with as many backticks; one or two that do not close reach to the end of the paragraph."""
    for match in re.compile("`+").finditer(text, start + len(mark)):
        if len(match.group()) == len(mark):
            return _close(text, start, match.end(), len(mark))
    if len(mark) < 3:
        paragraph = re.compile(r"\n[ \t]*\n").search(text, start)
        if paragraph is not None:
            return Region(start, paragraph.start(), "quoted", inline=True, closed=False)
    return _unclosed(text, start)


def _straight(text: str, start: int) -> Region | None:
    if start > 0 and text[start - 1].isdigit() and not text[start + 1 : start + 2].isalnum():
        return None  # inches, or seconds
    end = text.find('"', start + 1)
    if not _opens(text, start) or end < 0 or (end > start + 1 and not _closes(text, end)):
        return _unclosed(text, start)
    return _close(text, start, end + 1, 1)


def _single(text: str, start: int, mark: str) -> Region | None:
    """Single quotes: the sign is an apostrophe too, so a quotation of several words ends where it could last close."""
    closers = "'" if mark == "'" else _PAIRS[mark]
    if mark == "'":
        following = text[start + 1 : start + 2]
        if not _opens(text, start) or not following or following.isspace():
            return None
        if re.compile(r"'\d0s\b").match(text, start):
            return None  # the '90s
    last = -1
    for at in range(start + 1, len(text)):
        if text[at] == mark and mark != closers and text[at] not in closers:
            break
        if text[at] not in closers:
            continue
        if mark == "'" and _opens(text, at) and not _closes(text, at):
            break  # the next quotation
        if not _closes(text, at):
            continue
        last = at
        if not any(char.isspace() for char in text[start + 1 : at].strip()):
            break
    if last < 0:
        return _unclosed(text, start)
    return _close(text, start, last + 1, 1)


def _close(text: str, start: int, end: int, marks: int, *, shown: bool = False) -> Region:
    """One word in quotes is a name; more is shown."""
    words = text[start + marks : end - marks].split()
    return Region(start, end, "quoted" if shown or len(words) > 1 else "name", inline=True)


def _unclosed(text: str, start: int) -> Region:
    return Region(start, len(text), "quoted", inline=True, closed=False)


def _opens(text: str, at: int) -> bool:
    return at == 0 or text[at - 1].isspace() or text[at - 1] in _OPENS_AFTER


def _closes(text: str, at: int) -> bool:
    after = text[at + 1 : at + 2]
    ends = not after or after.isspace() or after in _CLOSES_BEFORE or text.startswith("s ", at + 1)
    return ends and not text[at - 1].isspace()
