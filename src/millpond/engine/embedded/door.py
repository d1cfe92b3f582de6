"""Closes the port on which Sail listens, once the one connection that is wanted has been made.

Sail listens on TCP only, and asks nobody who they are: whoever connects can run Python in this
process. What makes it listen, and what can be done by those who connect earlier, is `server`'s.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Address = tuple[str, int]

_DESCRIPTORS = "/dev/fd"
_PATIENCE_S = 5.0
_PAUSE_S = 0.001
# The longest folder below which a socket's path fits, on every system.
_FOLDER_BYTES = 80
# Begins an IPv4 address where a socket is of IPv6.
_MAPPED = "::ffff:"


def close_door(address: Address) -> socket.socket:
    """Let nobody connect to the port on which this process listens; connections stay.

    Returns:
        What keeps others from listening in its place, until it is closed.

    Raises:
        OSError: It can't be closed, or somebody else listens there by now.
    """
    listening = _listening(address)
    copy = socket.socket(fileno=os.dup(listening))
    # Closed, it would be missed: whoever listens is left a socket that nobody can connect to.
    with _unreachable() as silent:
        os.dup2(silent.fileno(), listening, inheritable=False)
    if sys.platform != "linux":
        # A port that has a connection can't be bound again there. So it stays as it is: who comes
        # waits for an answer that nobody gives.
        return copy
    copy.close()
    return _bound(address)


def show_out_strangers(address: Address) -> bool:
    """End the connections that other processes made to the port while it was open.

    Returns:
        Whether there were any.

    Raises:
        OSError: They don't end.
    """
    deadline = time.monotonic() + _PATIENCE_S
    seen = False
    while found := strangers(address):
        seen = True
        for descriptor in found:
            with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
                connection.shutdown(socket.SHUT_RDWR)
        if time.monotonic() > deadline:
            message = "connections that others made can't be ended"
            raise OSError(message)
        time.sleep(_PAUSE_S)
    return seen


def strangers(address: Address) -> list[int]:
    """Descriptors of connections that were accepted on the port from other processes."""
    ours: set[Address | None] = set()
    accepted: dict[int, Address | None] = {}
    for descriptor, here, there in _connections():
        if there == address:
            ours.add(here)
        if here == address:
            accepted[descriptor] = there
    return [descriptor for descriptor, peer in accepted.items() if peer not in ours]


def _bound(address: Address) -> socket.socket:
    """A socket that has the port to itself, and does not listen.

    It can be had only after the last call that accepts from the port has returned: until then
    somebody listens there.
    """
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of the port are there already.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                holder.bind(address)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
            else:
                break
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except BaseException:
        holder.close()
        raise
    return holder


@contextmanager
def _unreachable() -> Iterator[socket.socket]:
    """A socket that listens where nobody can connect: at a path that is gone."""
    fits = len(os.fsencode(tempfile.gettempdir())) <= _FOLDER_BYTES
    parent = None if fits else "/tmp"  # noqa: S108 - the folder made in it is of its owner alone
    with (
        tempfile.TemporaryDirectory(prefix="millpond-", dir=parent) as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent,
    ):
        path = Path(folder) / "s"
        silent.bind(str(path))
        path.unlink()
        silent.listen(1)
        silent.setblocking(False)
        yield silent


def _listening(address: Address) -> int:
    """The descriptor with which this process listens at the address."""
    for descriptor, found in _sockets():
        with suppress(OSError):
            listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if listens and _plain(found.getsockname()) == address:
                return descriptor
    message = "none of the open files of this process listens on it"
    raise OSError(message)


def _connections() -> Iterator[tuple[int, Address | None, Address | None]]:
    """The connections of this process: descriptor, own address, peer's address."""
    for descriptor, found in _sockets():
        with suppress(OSError):
            yield descriptor, _plain(found.getsockname()), _plain(found.getpeername())


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    """The sockets of this process, each only to be looked at, and until the next is asked for."""
    for path in list(Path(_DESCRIPTORS).iterdir()):
        descriptor = int(path.name)
        try:
            found = socket.socket(fileno=descriptor)
        except OSError:
            # It is no socket, or was closed meanwhile.
            continue
        try:
            yield descriptor, found
        finally:
            found.detach()


def _plain(name: object) -> Address | None:
    """An internet address, an IPv4 one always as such."""
    if not isinstance(name, tuple) or len(name) < 2:
        return None
    return str(name[0]).removeprefix(_MAPPED), int(name[1])
