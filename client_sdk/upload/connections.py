"""The connections of a transport, which another thread can cut, and an exchange that none can hold.

A timeout bounds a single read, so a peer that always says a little more is listened to for ever.
Nothing ends such a read but its socket.  Therefore a duplicate of every socket is kept: shutting
that down ends the connection for its reader too, in the middle of a TLS handshake as well.

Nor does a timeout bound the search for an address, or the tries of its addresses one after another.
So an exchange has a thread of its own, and nothing on its way can hold whoever waits for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextlib import closing, suppress
from threading import Thread

from ..core.locks import Process, this_process
from ..core.typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import socket

    from requests.adapters import HTTPAdapter

T = TypeVar("T")


class Connections:
    """The connections made since ``allow``.  Thread-safe; a forked child leaves its parent's be."""

    def __init__(self) -> None:
        """Begin without any; they may be made."""
        self._sockets: dict[Process, list[socket.socket]] = {}
        self._cut = False
        # the sockets are outside the cycle through the adapters, so they are whole by then
        weakref.finalize(self, _shut, self._sockets).atexit = False

    def allow(self) -> None:
        """Let connections be made again after ``cut``."""
        self._cut = False

    def add(self, connected: socket.socket) -> None:
        """Keep a duplicate of *connected*, which is shut down at once if all are to be cut."""
        import socket

        twin = socket.fromfd(connected.fileno(), connected.family, connected.type)
        self._sockets.setdefault(this_process(), []).append(twin)
        if self._cut:  # whoever cut may have looked before this one was added
            self.cut()

    def cut(self) -> None:
        """End all connections, whoever reads from them, and those that are being made."""
        self._cut = True
        _shut(self._sockets)

    def adapter(self) -> HTTPAdapter:
        """Return an adapter for a session of requests, whose connections are added here."""
        from socket import socket

        from requests.adapters import HTTPAdapter

        add = self.add

        class Watched:
            """A connection whose socket is added as soon as there is one, before any handshake.

            What comes in its place may be none: TLS by a proxy to which the way is TLS, too.
            """

            def __setattr__(self, name: str, value: Any) -> None:
                super().__setattr__(name, value)
                if name == "sock" and isinstance(value, socket):
                    add(value)

        class Adapter(HTTPAdapter):
            """Makes connections that can be cut, to proxies too."""

            def get_connection_with_tls_context(self, *arguments: Any, **options: Any) -> Any:
                pool: Any = super().get_connection_with_tls_context(*arguments, **options)
                connection = pool.ConnectionCls
                if not issubclass(connection, Watched):
                    pool.ConnectionCls = type(connection.__name__, (Watched, connection), {})
                return pool

        return Adapter()


def _shut(sockets: dict[Process, list[socket.socket]]) -> None:
    """Shut down what is this process's, and close its copies of what is its parent's."""
    import socket

    for process in list(sockets):
        for twin in sockets.pop(process, ()):
            with suppress(OSError), twin:  # the peer may have ended it already
                if process == this_process():
                    twin.shutdown(socket.SHUT_RDWR)


class Exchange(Generic[T]):
    """Runs a generator of ever more complete answers until it ends, fails or is given up."""

    def __init__(self, answers: Generator[T, None, None]) -> None:
        """Prepare; nothing of *answers* runs yet."""
        self._answers = answers
        self._thread: Thread | None = None
        self._latest: T | None = None
        self._error: Exception | None = None
        self._given_up = False

    def latest_within(self, timeout: float) -> T | None:
        """Run, and return the latest answer after *timeout* seconds; None if there is none yet.

        Called once.  Raises what the generator raised before its first answer.
        """
        try:
            # it is a daemon: a request that was given up must not hold the end of the process
            thread = Thread(target=self._run, name="hearsay-exchange", daemon=True)
            thread.start()
        except RuntimeError:  # too many threads, an interpreter that ends, or one that has none
            self._run()
        else:
            self._thread = thread
            thread.join(timeout)
        self._given_up = True
        if self._latest is None and self._error is not None:
            raise self._error
        return self._latest

    def ended_within(self, timeout: float) -> bool:
        """Wait up to *timeout* seconds, after ``latest_within``; return whether it has ended."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        try:
            with closing(self._answers) as answers:
                for self._latest in answers:
                    if self._given_up:
                        return
        except Exception as error:  # noqa: BLE001 - it is raised again in the thread that waits
            self._error = error
