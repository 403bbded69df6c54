"""The guards of the test suite itself."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest


def test_a_test_cannot_connect_beyond_loopback():
    with socket.socket() as sock, pytest.raises(AssertionError, match="reached for"):
        sock.connect(("192.0.2.1", 9))


def test_a_test_cannot_send_beyond_loopback():
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(AssertionError, match="reached for"):
        sock.sendto(b"x", ("192.0.2.1", 9))


def test_a_test_cannot_look_up_a_name():
    with pytest.raises(AssertionError, match="looked up"):
        socket.create_connection(("example.invalid", 9))


def test_asyncio_is_guarded_too():
    async def reach() -> None:
        await asyncio.open_connection("192.0.2.1", 9)

    with pytest.raises(AssertionError, match="reached for"):
        asyncio.run(reach())


def test_loopback_is_open():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        served, _ = server.accept()
        with served:
            client.sendall(b"x")
            assert served.recv(1) == b"x"


def test_each_test_has_an_empty_state_folder():
    assert list(Path(os.environ["XDG_STATE_HOME"]).iterdir()) == []
    assert len(os.environ["XDG_STATE_HOME"]) < 50
