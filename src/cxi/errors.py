"""What can go wrong, and whose fault is it?

Two things live here, and they never mix:

- A *denial* is a value. `Refused` carries every `Reason` at once; each has a stable `Code`, the place it is about (a field
  path, a byte range, a file and line), one lowercase line of detail and what would help. The gate returns it.
- A *fault* is raised. `CxiError` is drawn as a tree by whose fault it is: the caller's input, the operator's settings, an
  authority that does not hold, the storage below, or a sink whose effect went wrong.

Reason codes are part of the public surface: they are documented one by one in `docs/reason-codes.md`, which is made from
`CODES` below, and tests assert codes, never messages.

    >>> Refused.of(Code.FIELD_MISSING, "`path` is required", where="path").codes
    ('FIELD_MISSING',)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Self


class Code(StrEnum):
    """A stable reason code. Adding one means a row in `CODES` and a test."""

    # --- the call as it was written
    MALFORMED_JSON = "MALFORMED_JSON"
    DUPLICATE_KEY = "DUPLICATE_KEY"
    NUMBER_NOT_EXACT = "NUMBER_NOT_EXACT"
    NON_CANONICAL_TEXT = "NON_CANONICAL_TEXT"
    HIDDEN_TEXT = "HIDDEN_TEXT"
    TOO_LARGE = "TOO_LARGE"
    FIELD_MISSING = "FIELD_MISSING"
    FIELD_UNCLASSIFIED = "FIELD_UNCLASSIFIED"
    FIELD_TYPE = "FIELD_TYPE"
    FIELD_NOT_FIXED = "FIELD_NOT_FIXED"
    PATH_MALFORMED = "PATH_MALFORMED"
    PATH_OUTSIDE_ROOT = "PATH_OUTSIDE_ROOT"
    PATH_UNRESOLVED = "PATH_UNRESOLVED"
    PATH_PROTECTED = "PATH_PROTECTED"
    # --- the tool and its server
    TOOL_UNKNOWN = "TOOL_UNKNOWN"
    TOOL_UNCONTRACTED = "TOOL_UNCONTRACTED"
    TOOL_UNPINNED = "TOOL_UNPINNED"
    TOOL_DEFINITION_CHANGED = "TOOL_DEFINITION_CHANGED"
    SERVER_CHANGED = "SERVER_CHANGED"
    METHOD_OFF = "METHOD_OFF"
    METHOD_UNKNOWN = "METHOD_UNKNOWN"
    # --- field authority
    FIELD_NO_AUTHORITY = "FIELD_NO_AUTHORITY"
    FIELD_AMBIGUOUS = "FIELD_AMBIGUOUS"
    TUPLE_SPLIT = "TUPLE_SPLIT"
    RELEASE_VOID = "RELEASE_VOID"
    # --- exact effect
    EFFECT_UNREADABLE = "EFFECT_UNREADABLE"
    EFFECT_UNSUPPORTED = "EFFECT_UNSUPPORTED"
    EFFECT_INEXACT = "EFFECT_INEXACT"
    EFFECT_FORBIDDEN = "EFFECT_FORBIDDEN"
    EFFECT_DIFFERS = "EFFECT_DIFFERS"
    SNAPSHOT_CHANGED = "SNAPSHOT_CHANGED"
    # --- policy
    CALL_NOT_PERMITTED = "CALL_NOT_PERMITTED"
    POLICY_FORBIDS = "POLICY_FORBIDS"
    POLICY_ERROR = "POLICY_ERROR"
    # --- the event
    SESSION_UNKNOWN = "SESSION_UNKNOWN"
    TASK_NONE = "TASK_NONE"
    GRANT_MISSING = "GRANT_MISSING"
    GRANT_EXHAUSTED = "GRANT_EXHAUSTED"
    LIMIT_REACHED = "LIMIT_REACHED"
    SEQUENCE_UNMET = "SEQUENCE_UNMET"
    RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
    NOT_YET = "NOT_YET"
    EVENT_REPEATED = "EVENT_REPEATED"
    KEY_REUSE_CONFLICT = "KEY_REUSE_CONFLICT"
    IN_FLIGHT = "IN_FLIGHT"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    CAPABILITY_USED = "CAPABILITY_USED"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"
    EPOCH_CHANGED = "EPOCH_CHANGED"
    DELEGATION_VOID = "DELEGATION_VOID"
    APPROVAL_MISMATCH = "APPROVAL_MISMATCH"
    CALL_DENIED = "CALL_DENIED"
    CARRIAGE_UNLINKED = "CARRIAGE_UNLINKED"
    # --- below the gate
    LEDGER_UNAVAILABLE = "LEDGER_UNAVAILABLE"
    SINK_DOWN = "SINK_DOWN"
    SINK_TIMEOUT = "SINK_TIMEOUT"
    SINK_MALFORMED = "SINK_MALFORMED"


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One row of the documentation of reason codes.

    Attributes:
        meaning: What was found, one sentence.
        helps: What the user or the operator can do about it, one sentence.
    """

    meaning: str
    helps: str


CODES: Final[MappingProxyType[Code, CodeRow]] = MappingProxyType(
    {
        Code.MALFORMED_JSON: CodeRow("the text is not one JSON value, or not a JSON-RPC message", "send well-formed JSON"),
        Code.DUPLICATE_KEY: CodeRow(
            "an object names the same key twice, so two readers could see two values", "name each key once"
        ),
        Code.NUMBER_NOT_EXACT: CodeRow(
            "a number is a float where the type allows none, is not finite, or is beyond 2^53",
            "send an integer within 2^53, or the number as a string",
        ),
        Code.NON_CANONICAL_TEXT: CodeRow(
            "a protected text holds a lone surrogate, a control or a format character",
            "send the text without characters that a reader cannot see",
        ),
        Code.HIDDEN_TEXT: CodeRow(
            "a trusted source (a policy, a prose rule, a tool definition) holds hidden or confusable characters",
            "remove them from the source, then pin it again",
        ),
        Code.TOO_LARGE: CodeRow("the input is over its size limit", "send less at once"),
        Code.FIELD_MISSING: CodeRow("a field that the contract requires is absent", "send the field"),
        Code.FIELD_UNCLASSIFIED: CodeRow(
            "the contract names no role for this field", "leave the field out, or classify it in the contract"
        ),
        Code.FIELD_TYPE: CodeRow(
            "the value is not one of its type, or is one of several types", "send a value of the type named"
        ),
        Code.FIELD_NOT_FIXED: CodeRow("the contract fixes this field to another constant", "leave the field out"),
        Code.PATH_MALFORMED: CodeRow("the path holds NUL, is empty, or is too long for the system", "send an ordinary path"),
        Code.PATH_OUTSIDE_ROOT: CodeRow("the path, with links resolved, leaves the declared root", "name a path inside the root"),
        Code.PATH_UNRESOLVED: CodeRow(
            "the path cannot be resolved as the kernel would (a loop, a file used as a folder, `..` below something absent)",
            "name the path without it",
        ),
        Code.PATH_PROTECTED: CodeRow(
            "the effect would touch CXI's own files, which no policy can permit",
            "a person changes these files, outside the agent",
        ),
        Code.TOOL_UNKNOWN: CodeRow("no server offers a tool of this name", "list the tools again"),
        Code.TOOL_UNCONTRACTED: CodeRow("no contract describes this tool", "add a contract or a pack, then `cxi check`"),
        Code.TOOL_UNPINNED: CodeRow("the tool's definition is not in `cxi.lock`", "a person runs `cxi lock`"),
        Code.TOOL_DEFINITION_CHANGED: CodeRow(
            "the server now describes the tool otherwise than the definition pinned in `cxi.lock`",
            "a person reads `cxi lock --diff` and accepts it",
        ),
        Code.SERVER_CHANGED: CodeRow(
            "the server's program, arguments or address differ from those pinned in `cxi.lock`",
            "a person reads `cxi lock --diff` and accepts it",
        ),
        Code.METHOD_OFF: CodeRow("this MCP method is off unless the configuration turns it on", "configure it, or do without"),
        Code.METHOD_UNKNOWN: CodeRow("this MCP method has no row in the method table", "use a method that the table lists"),
        Code.FIELD_NO_AUTHORITY: CodeRow(
            "the value has no authority for this field: it was seen only in untrusted text, or nowhere",
            "the user's request, a release to this field, or an approval",
        ),
        Code.FIELD_AMBIGUOUS: CodeRow(
            "several candidates have equal authority for this field, and nothing trusted says which",
            "a request that names one, or a role in the contract (`after:`, `any-of-request`)",
        ),
        Code.TUPLE_SPLIT: CodeRow(
            "fields that belong together do not come from one clause, one record or one approval",
            "a request that names the combination in one clause",
        ),
        Code.RELEASE_VOID: CodeRow(
            "a release for this value exists but does not hold: expired, of an older epoch or task, or what it read changed",
            "read the source again",
        ),
        Code.EFFECT_UNREADABLE: CodeRow("the adapter cannot read the payload whole", "send a simpler payload"),
        Code.EFFECT_UNSUPPORTED: CodeRow(
            "the adapter reads the payload but does not know its effect exactly", "use a supported form"
        ),
        Code.EFFECT_INEXACT: CodeRow(
            "the stated effect does not fit what is there (creating what exists, deleting what is absent)",
            "look at the present state first",
        ),
        Code.EFFECT_FORBIDDEN: CodeRow("no policy permits one of the effect's atoms", "a policy that permits the atom"),
        Code.EFFECT_DIFFERS: CodeRow(
            "what the sink did differs from the effect that was admitted", "a person looks at the receipt"
        ),
        Code.SNAPSHOT_CHANGED: CodeRow(
            "what the plan read changed before the sink ran, so the admitted effect is no longer what would happen",
            "propose the call again",
        ),
        Code.CALL_NOT_PERMITTED: CodeRow("no policy permits calling this tool on its target", "a policy that permits the call"),
        Code.POLICY_FORBIDS: CodeRow("a policy forbids it", "what the policy's own text asks for"),
        Code.POLICY_ERROR: CodeRow("a policy raised an error, and an erroring policy denies", "mend the policy"),
        Code.SESSION_UNKNOWN: CodeRow(
            "the call maps to no open session, so it may only list", "open a session on the request channel"
        ),
        Code.TASK_NONE: CodeRow("no task is open, so the request gives no authority", '`cxi task start "..."`'),
        Code.GRANT_MISSING: CodeRow(
            "neither the task, a standing rule nor an approval grants this tool", "start a task that grants it"
        ),
        Code.GRANT_EXHAUSTED: CodeRow("the grant's count or window is used up", "start a new task, or an approval"),
        Code.LIMIT_REACHED: CodeRow(
            "the call would take more than a limit of the grant gives: items in one call, a sum, or a count over many sessions",
            "ask for less, wait until the limit's window has passed, or an approval",
        ),
        Code.SEQUENCE_UNMET: CodeRow(
            "the grant holds only after another call was done in this session", "first do what the grant waits for"
        ),
        Code.RETRIES_EXHAUSTED: CodeRow(
            "the same event failed more often than the grant lets it be tried again",
            "look why it fails, then start a new task, or an approval",
        ),
        Code.NOT_YET: CodeRow("the grant does not hold at this hour, and will hold later", "wait until it holds"),
        Code.EVENT_REPEATED: CodeRow(
            "the same event happened already, and the grant does not cover another",
            "if the event is done, nothing; else a new task or an approval",
        ),
        Code.KEY_REUSE_CONFLICT: CodeRow("the idempotency key was used for another action", "use a new key"),
        Code.IN_FLIGHT: CodeRow("an equal event is under way", "wait for its answer"),
        Code.OUTCOME_UNKNOWN: CodeRow(
            "an equal event was launched and its outcome is not known",
            "a person looks whether it happened: `cxi ledger release CALL --as done|failed --reason …`",
        ),
        Code.CAPABILITY_USED: CodeRow("the capability or its nonce was used already", "propose the call again"),
        Code.EXPIRED: CodeRow("the session, grant, approval or lease is past its time", "start it again"),
        Code.REVOKED: CodeRow("a person revoked the session, task, grant, capability, user, policy or epoch", "start it again"),
        Code.EPOCH_CHANGED: CodeRow(
            "a newer policy epoch is in force than the one this decision was made under",
            "start the gateway or the program anew: it runs under an older configuration",
        ),
        Code.CALL_DENIED: CodeRow("a person said no to this very call", "ask the person; only a yes to this very call lifts it"),
        Code.DELEGATION_VOID: CodeRow(
            "a delegation asks for more than its giver has, or its token is forged, damaged or another installation's",
            "ask the giver for a new one, of no more than it has",
        ),
        Code.APPROVAL_MISMATCH: CodeRow("the approval was given for another action, effect or display", "ask for a new approval"),
        Code.CARRIAGE_UNLINKED: CodeRow(
            "no unconsumed proposal of the latest decision state matches the call", "call through the model proxy"
        ),
        Code.LEDGER_UNAVAILABLE: CodeRow(
            "the ledger or the log cannot be written, so nothing may happen", "free the disk, mend the file"
        ),
        Code.SINK_DOWN: CodeRow("the server is not running", "start it again"),
        Code.SINK_TIMEOUT: CodeRow("the server did not answer in time", "look at the server, then reconcile"),
        Code.SINK_MALFORMED: CodeRow("the server's answer is not a valid message, or is too large", "look at the server"),
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was refused.

    Attributes:
        code: The stable code.
        detail: One lowercase line, values in backticks.
        where: What it is about: a field path, `bytes 3-9`, `file:line`, or an atom.
        needs: What would help; empty means the general advice of `CODES`.
    """

    code: Code
    detail: str
    where: str = ""
    needs: str = ""

    @property
    def helps(self) -> str:
        """What would help, falling back to the code's general advice."""
        return self.needs or CODES[self.code].helps

    def __str__(self) -> str:
        place = f" {self.where}:" if self.where else ""
        return f"{self.code}{place} {self.detail}"


@dataclass(frozen=True, slots=True)
class Refused:
    """A denial: a value, never raised, that names every reason at once.

    Attributes:
        reasons: At least one reason, in the order of the gate's steps.
    """

    reasons: tuple[Reason, ...]

    def __post_init__(self) -> None:
        if not self.reasons:
            raise ValueError("a refusal names at least one reason")

    @classmethod
    def of(cls, code: Code, detail: str, *, where: str = "", needs: str = "") -> Self:
        """A refusal for one reason."""
        return cls((Reason(code, detail, where, needs),))

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes, in order, without repeats."""
        return tuple(dict.fromkeys(str(reason.code) for reason in self.reasons))

    def __add__(self, other: Refused) -> Refused:
        return Refused(self.reasons + other.reasons)


class CxiError(Exception):
    """The root of the tree; never raised itself.

    Attributes:
        code: A stable name of the fault, for programs.
    """

    code: str = "CXI_ERROR"


class MalformedError(CxiError, ValueError):
    """The caller's input is not what it must be.

    Attributes:
        reason: The same as a reason, so that an edge can refuse with it.
    """

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.code = str(reason.code)


class ConfigError(CxiError):
    """Contracts, policies or settings are wrong: refused at start-up.

    Attributes:
        problems: Every problem found, each with file, line and what would mend it.
    """

    code = "CONFIG_ERROR"

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in what the operator wrote.

    Attributes:
        file: The file, as the operator named it.
        line: Its line, from 1; 0 where a whole file is meant.
        detail: What is wrong, one lowercase line.
        mend: What would mend it.
    """

    file: str
    line: int
    detail: str
    mend: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.detail}" + (f" (mend: {self.mend})" if self.mend else "")


class AuthorityError(CxiError):
    """An authority was presented that does not hold."""

    code = "AUTHORITY_ERROR"


class LedgerError(CxiError):
    """The ledger or the log cannot be read or written: the gate refuses."""

    code = "LEDGER_UNAVAILABLE"


class EffectError(CxiError):
    """A sink's effect went wrong."""

    code = "EFFECT_ERROR"


class NotStarted(EffectError):
    """The effect certainly did not begin, so the event may be proposed again.

    Attributes:
        reason: Why, as a reason.
    """

    code = "NOT_STARTED"

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class OutcomeUnknown(EffectError):
    """The effect may or may not have happened: its event key is blocked.

    Attributes:
        reason: Why, as a reason.
    """

    code = "OUTCOME_UNKNOWN"

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason
