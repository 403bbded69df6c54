"""A TCP relay on loopback that loses what a test says: the next request, or the next answer, with its connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Literal, Self


class Relay:
    """Between a client and a server's port. `lose` arms it for one loss."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._armed: Literal["", "request", "answer"] = ""
        self._open = True
        self._shut = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._guard = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def lose(self, what: Literal["request", "answer"], *, shut: bool = False) -> None:
        """Lose the next of these, and its connection; with `shut`, nobody gets through afterwards until `reopen`."""
        with self._guard:
            self._armed = what
            self._shut = shut

    def reopen(self) -> None:
        """Let connections through again."""
        with self._guard:
            self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for pair in self._pairs:
            _close(*pair)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._guard:
                if not self._open:
                    client.close()
                    continue
            server = socket.create_connection(("127.0.0.1", self._target))
            self._pairs.append((client, server))
            for source, sink, what in ((client, server, "request"), (server, client, "answer")):
                thread = threading.Thread(target=self._pump, args=(source, sink, what))
                self._threads.append(thread)
                thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, what: str) -> None:
        while True:
            try:
                data = source.recv(65536)
                with self._guard:
                    lost = bool(data) and self._armed == what
                    if lost:
                        self._armed = ""
                        if self._shut:
                            self._open = False
                if not data or lost:
                    break
                sink.sendall(data)
            except OSError:
                break
        _close(source, sink)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
