"""How often did it really happen? A sink of its own: a process with its own file, that knows nothing of CXI.

- Run as `python -I -S counter.py SOCKET FILE`; it imports the standard library alone.
- A request is a line, `EVENT CALL MODE`. An effect is one line `EVENT CALL` appended to the file, in one write.
- `do` answers `done` after the effect. `mute` does it and never answers. `late` answers `begun`, and does it only when the caller
  has hung up, or is dead. `fail` does nothing and answers `failed`. `count` does it and says nothing; `sync` asks, at the end,
  whether all is written.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def serve(address: str, file: str) -> None:
    """Count until standard input ends."""
    effects = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(128)
        threading.Thread(target=_accept, args=(listener, effects), daemon=True).start()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()


def _accept(listener: socket.socket, effects: int) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, effects), daemon=True).start()


def _answer(connection: socket.socket, effects: int) -> None:
    with connection:
        try:
            lines = connection.makefile("r", encoding="utf-8")
            while line := lines.readline():
                event, call, mode = line.split()
                if mode == "late":
                    connection.sendall(b"begun\n")
                    connection.recv(1)
                if mode not in ("fail", "sync"):
                    os.write(effects, f"{event} {call}\n".encode())
                if mode == "mute":
                    connection.recv(1)
                if mode != "count":
                    connection.sendall(b"failed\n" if mode == "fail" else b"done\n")
        except OSError:
            return


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
