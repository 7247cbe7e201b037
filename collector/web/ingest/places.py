"""Who may wait for a thread: half of the places are for requests that show a good credential.

All is judged on the event loop, by what was last read of the store: nothing waits for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import parse_qs

from ...core.errors import OverloadedError
from ...core.proxies import ProxyLogin
from ...intake.keyring import Keyring
from ..auth import shown_in

_FIELDS: Final = 4  # of the form of a log-in


class Places:
    """The requests of a process that have a thread or wait for one."""

    def __init__(self, keyring: Keyring, proxy: ProxyLogin | None, most: int) -> None:
        """Let *most* requests in, half of them without a credential that *keyring* knows.

        Args: proxy: whom it names, shows a credential.
        """
        self._keyring, self._proxy, self._most = keyring, proxy, most
        self._taken = {True: 0, False: 0}  # by whether the credential is known

    @contextmanager
    def place(self, is_known: bool) -> Iterator[None]:
        """Count a request, by whether its credential is known.

        Law: however many come without a credential, half of the places stay for those with.

        Raises: OverloadedError: as many have a thread or wait for one as may.
        """
        is_full = sum(self._taken.values()) >= self._most
        if is_full or (not is_known and self._taken[False] >= self._most // 2):
            raise OverloadedError("pages and queries: as many wait as may")
        self._taken[is_known] += 1
        try:
            yield
        finally:
            self._taken[is_known] -= 1

    def knows(self, scope: Any) -> bool:
        """Return whether the request *scope* shows a good token, or the name of a person."""
        if self._names(scope):
            return self._proxy is not None and self._proxy.is_trusted(peer_of(scope))
        return any(map(self._keyring.knows, _presented(scope)))

    def is_good(self, form: bytes) -> bool:
        """Return whether the *form* of a log-in holds a good token."""
        try:
            [token, *_] = parse_qs(form.decode(), max_num_fields=_FIELDS)["token"]
        except (ValueError, KeyError):
            return False
        return self._keyring.knows(f"Bearer {token.strip()}")

    def shows(self, scope: Any) -> bool:
        """Return whether the request *scope* shows anything that may say who asks."""
        return self._names(scope) or bool(_presented(scope))

    def _names(self, scope: Any) -> bool:
        header = self._proxy and scope.headers.get(self._proxy.user_header.lower())
        return bool(header)


def peer_of(scope: Any) -> str:
    """Return the address of the socket by which the request *scope* came."""
    address: str = scope.client.rpartition(":")[0]
    return address.strip("[]")


def _presented(scope: Any) -> list[str]:
    cookie = "; ".join(scope.headers.get_all("cookie"))
    return shown_in(scope.headers.get("authorization") or "", cookie)
