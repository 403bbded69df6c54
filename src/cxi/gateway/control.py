"""How does a person reach a running gateway, where the agent cannot?

- A Unix socket (0600) in the state folder (0700), and a file (0600) beside it with a token: both are CXI's own, which no admitted
  effect touches. The peer's user is checked with SO_PEERCRED (unix(7)), the token in constant time.
- One line of JSON asks, one answers: `{"token", "op": "task.start", "request", "as"}`; ops are `task.start`, `task.add`,
  `task.stop`, `task.list`, `approve.list`, `approve.answer` and `status`. An answer has `ok` and `text`; a refusal has `error`
  and `reasons` as well.
- This is the request channel of `cxi task start`, and the approver's channel of `cxi approve`: what it carries is T. The agent's
  own channel carries no such message.

    control(config, {"op": "task.start", "as": "fix-bug", "request": "Fix the failing rounding test"})
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import secrets
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from cxi.authority.approval import Approval
from cxi.authority.desk import Answer, Denial, Pending, Verdict, Waiting
from cxi.canonical import JsonValue, parse_json
from cxi.errors import Code, CxiError, LedgerError, MalformedError, Reason, Refused
from cxi.provenance import RequestChannel
from cxi.sinks.wire import Oversized, read_lines, write_json

LONGEST: Final = 1024 * 1024
PATIENCE: Final = 10.0
_LONGEST_PATH: Final = 100  # of the 108 bytes of sun_path (unix(7))
_FIELDS: Final = {
    "task.start": {"request", "as"},
    "task.add": {"request"},
    "task.stop": set(),
    "task.list": set(),
    "approve.list": set(),
    "approve.answer": {"pending", "action", "shown", "verdict"},
    "status": set(),
}


class Host(Protocol):
    """A session, as the person's channel needs it."""

    @property
    def id(self) -> str: ...
    def start_task(self, request: str, task: str | None, *, channel: RequestChannel, credential: str) -> str | Refused: ...
    def add_request(self, text: str, *, channel: RequestChannel, credential: str) -> Refused | None: ...
    def stop_task(self) -> None: ...
    def pending(self) -> tuple[Pending, ...]: ...
    def answer(self, answer: Answer) -> Approval | Denial | Waiting | Refused: ...


class Setting(Protocol):
    """A configuration, as the control socket needs it."""

    @property
    def file(self) -> Path: ...
    @property
    def state(self) -> Path: ...
    @property
    def tasks(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class LiveGateway:
    """A gateway that runs with this configuration.

    Attributes:
        pid: Its process.
        session: Its session.
        socket: Its socket.
        token: What it asks for.
        started: When it started, seconds since the epoch.
    """

    pid: int
    session: str
    socket: Path
    token: str
    started: float


class ControlServer:
    """The socket of one running gateway."""

    def __init__(self, config: Setting, session: Host, socket_path: Path, token: str) -> None:
        self._config = config
        self._session = session
        self._path = socket_path
        self._card = socket_path.with_suffix(".json")
        self._token = token
        self._task: Mapping[str, JsonValue] | None = None
        self._server: asyncio.Server | None = None

    @classmethod
    async def open(cls, config: Setting, session: Host, *, opened: Mapping[str, JsonValue] | None = None) -> ControlServer:
        """Listen.

        Args:
            config: The configuration that the gateway runs with.
            session: Its session.
            opened: The `task` and the `request` that are open already.

        Raises:
            LedgerError: the state folder cannot be used.
        """
        server = cls(config, session, config.state / f"control-{os.getpid()}.sock", secrets.token_hex(32))
        server._task = opened
        try:
            await server._listen()
        except OSError as error:
            raise LedgerError(f"the control socket cannot be made in `{config.state}`: {error}") from error
        return server

    async def close(self) -> None:
        """Stop to listen, and leave nothing behind."""
        if self._server is not None:
            self._server.close()
        for path in (self._path, self._card):
            path.unlink(missing_ok=True)

    async def _listen(self) -> None:
        state = self._config.state
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        state.chmod(0o700)
        self._path.unlink(missing_ok=True)  # of a process that had our pid once
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.setblocking(False)
        # The folder is 0700, so nobody can connect between bind and chmod.
        with _short(self._path) as address:
            listener.bind(address)
        self._path.chmod(0o600)
        card: dict[str, JsonValue] = {
            "pid": os.getpid(),
            "config": str(self._config.file),
            "session": self._session.id,
            "token": self._token,
            "started": time.time(),
        }
        self._card.unlink(missing_ok=True)
        with os.fdopen(os.open(self._card, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(write_json(card))
        self._server = await asyncio.start_unix_server(self._meet, sock=listener)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if _peer(writer) == os.getuid():
                async with asyncio.timeout(PATIENCE):
                    async for line in read_lines(reader, LONGEST):
                        writer.write(write_json(self.answer(line)) + b"\n")
                        await writer.drain()
        except (OSError, TimeoutError):
            pass  # it is gone, or says nothing
        finally:
            writer.close()

    def answer(self, line: bytes | Oversized) -> dict[str, JsonValue]:
        """The answer to one line."""
        if isinstance(line, Oversized):
            return _no(Reason(Code.TOO_LARGE, f"a message is at most {LONGEST} bytes"))
        try:
            message = parse_json(line, limit=LONGEST)
        except MalformedError as error:
            return _no(error.reason)
        if not isinstance(message, Mapping):
            return _no(Reason(Code.MALFORMED_JSON, "a message is an object"))
        token = message.get("token")
        # INVARIANT (credential-first): nothing else of a message is looked at before its token.
        if not isinstance(token, str) or not hmac.compare_digest(token.encode(), self._token.encode()):
            return _no(Reason(Code.SESSION_UNKNOWN, "the token is wrong", "token"))
        op = message.get("op")
        if not isinstance(op, str) or op not in _FIELDS:
            return _no(Reason(Code.METHOD_UNKNOWN, f"an op is one of {', '.join(_FIELDS)}", "op"))
        for name in message:
            if name not in {"token", "op", *_FIELDS[op]}:
                return _no(Reason(Code.FIELD_UNCLASSIFIED, f"`{op}` has no `{name[:50]}`", name[:50]))
        try:
            return self._do(op, message)
        except CxiError as error:
            return _no(Reason(Code.LEDGER_UNAVAILABLE, str(error), "ledger"))

    def _do(self, op: str, message: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        text, credential = "", f"control:{os.getuid()}"
        if op == "approve.list":
            return {
                "ok": True,
                "text": "",
                "session": self._session.id,
                "pending": [_tell(one) for one in self._session.pending()],
            }
        if op == "approve.answer":
            return self._take_answer(message, credential)
        if op in ("task.start", "task.add"):
            request, task = message.get("request"), message.get("as")
            if not isinstance(request, str) or not (task is None or isinstance(task, str)):
                return _no(Reason(Code.FIELD_TYPE, "`request` is a text, and `as` the name of a task", "request"))
            if op == "task.add":
                if refused := self._session.add_request(request, channel=RequestChannel.CONTROL_SOCKET, credential=credential):
                    return _no(*refused.reasons)
                text = "added to the open task"
            else:
                started = self._session.start_task(request, task, channel=RequestChannel.CONTROL_SOCKET, credential=credential)
                if isinstance(started, Refused):
                    return _no(*started.reasons)
                self._task = {"task": started, "request": request, "started": time.time()}
                text = f"task `{started}` is open" if task is not None else self._explain_unnamed()
        elif op == "task.stop":
            self._session.stop_task()
            text = "the task is closed" if self._task is not None else "no task was open"
            self._task = None
        else:
            opened = f"task `{self._task['task']}`: {self._task['request']}" if self._task is not None else "no task is open"
            text = f"{self._session.id} (pid {os.getpid()})  {opened}"
        return {
            "ok": True,
            "text": text,
            "session": self._session.id,
            "pid": os.getpid(),
            "open": self._task,
            "tasks": sorted(self._config.tasks),
        }

    def _take_answer(self, message: Mapping[str, JsonValue], credential: str) -> dict[str, JsonValue]:
        pending, action, shown, verdict = (message.get(name) for name in ("pending", "action", "shown", "verdict"))
        if not (isinstance(pending, str) and isinstance(action, str) and isinstance(shown, str)) or verdict not in tuple(Verdict):
            return _no(Reason(Code.FIELD_TYPE, "an answer has `pending`, `action`, `shown` and a `verdict`", "verdict"))
        made = self._session.answer(Answer(pending, action, shown, Verdict(str(verdict)), credential))
        text = ""
        match made:
            case Refused():
                return _no(*made.reasons)
            case Waiting():
                text = f"{pending}: {made.missing} more must say yes"
            case Denial():
                text = f"{pending}: denied"
            case Approval():
                text = f"{pending}: granted, once"
        return {"ok": True, "text": text, "session": self._session.id}

    def _explain_unnamed(self) -> str:
        names = ", ".join(f"`{name}`" for name in sorted(self._config.tasks))
        mend = f"to grant something, start it with `--as` and one of {names}" if names else "no task is configured that would"
        return f"your words are the request; this task grants nothing by itself ({mend})"


def _tell(pending: Pending) -> dict[str, JsonValue]:
    return {
        "id": pending.id,
        "call": pending.call,
        "tool": pending.tool,
        "action": pending.action,
        "shown": pending.shown,
        "display": pending.display,
        "risks": list(pending.risks),
        "expires": pending.expires,
    }


def live_gateways(config: Setting) -> tuple[LiveGateway, ...]:
    """The gateways that run with this configuration, oldest first; the cards of dead ones are removed."""
    found: list[LiveGateway] = []
    for card in sorted(config.state.glob("control-*.json")):
        gateway = _read_card(card, config)
        if gateway is None:
            continue
        try:
            _connect(gateway.socket).close()
        except OSError:
            if not Path(f"/proc/{gateway.pid}").exists():
                for path in (card, gateway.socket):
                    path.unlink(missing_ok=True)
            continue
        found.append(gateway)
    return tuple(sorted(found, key=lambda gateway: gateway.started))


def control(config: Setting, message: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Ask the running gateway.

    Args:
        config: The configuration that it runs with.
        message: `op` and its fields, and `session` (a session's id or a gateway's pid) where several gateways run.

    Returns:
        Its answer. `task.list` without a session asks all of them: `gateways` has an answer each.
    """
    session = str(message.get("session") or "")
    asked = {name: value for name, value in message.items() if name != "session"}
    gateways = live_gateways(config)
    chosen = [one for one in gateways if not session or session in (one.session, str(one.pid))]
    if message.get("op") == "task.list" and not session:
        answers = [_ask(one, asked) for one in chosen]
        text = "\n".join(str(answer.get("text") or answer.get("error")) for answer in answers)
        return {"ok": True, "text": text or "no gateway runs", "gateways": list(answers)}
    if not chosen:
        named = f" with the session `{session}`" if session else ""
        return _no(
            Reason(Code.SESSION_UNKNOWN, f"no gateway runs with `{config.file}`{named}", "session", "start one: `cxi gateway`")
        )
    if len(chosen) > 1:
        names = ", ".join(f"{one.session} (pid {one.pid})" for one in chosen)
        return _no(Reason(Code.SESSION_UNKNOWN, f"several gateways run: {names}", "session", "name one with --session"))
    return _ask(chosen[0], asked)


def _ask(gateway: LiveGateway, message: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        answer = parse_json(_exchange(gateway, {**message, "token": gateway.token}), limit=LONGEST)
    except (OSError, MalformedError) as error:
        return _no(Reason(Code.SESSION_UNKNOWN, f"the gateway (pid {gateway.pid}) does not answer: {error}", "session"))
    if not isinstance(answer, dict):
        return _no(Reason(Code.SESSION_UNKNOWN, f"the gateway (pid {gateway.pid}) answered with nonsense", "session"))
    return answer


def _exchange(gateway: LiveGateway, message: Mapping[str, JsonValue]) -> bytes:
    with _connect(gateway.socket) as connection:
        connection.sendall(write_json(message) + b"\n")
        answer = b""
        while b"\n" not in answer:
            chunk = connection.recv(65536)
            if not chunk:
                raise ConnectionResetError("it closed the connection")
            answer += chunk
    return answer.partition(b"\n")[0]


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    try:
        with _short(path) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """A path that fits into a socket's address, through the folder's descriptor where the path itself is too long."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _peer(writer: asyncio.StreamWriter) -> int:
    """The user at the other end (SO_PEERCRED: struct ucred {pid, uid, gid})."""
    size = struct.calcsize("3i")
    credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", credentials)[1])


def _read_card(card: Path, config: Setting) -> LiveGateway | None:
    try:
        value = parse_json(card.read_bytes())
    except (OSError, MalformedError):
        return None
    match value:
        case {"pid": int(pid), "config": str(file), "session": str(session), "token": str(token), "started": float(started)}:
            ours = file == str(config.file)
            return LiveGateway(pid, session, card.with_suffix(".sock"), token, started) if ours else None
        case _:
            return None


def _no(*reasons: Reason) -> dict[str, JsonValue]:
    return {
        "ok": False,
        "error": "; ".join(f"{reason.code}: {reason.detail} (needs: {reason.helps})" for reason in reasons),
        "reasons": [
            {"code": str(reason.code), "detail": reason.detail, "where": reason.where, "needs": reason.helps}
            for reason in reasons
        ],
    }
