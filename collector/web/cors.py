"""Which pages of other sites may report from a browser: those whose origin the settings list.

A browser keeps an answer from the script of another origin unless the answer names that origin, and
asks before it sends what a form could not (a preflight).  Here it is named on the two paths that a
device uses, errors included, and nowhere else.  Cookies are never allowed, so an answer is the same
to everybody but for these headers; ``Vary`` says so to caches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from client_sdk.wire.private_token import HEADER

Headers = Sequence[tuple[str, str]]

# What a device asks for, by path.  The read API and the pages are for no other site.
METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {"/v1/reports": "POST", "/v1/retired": "GET"},
)
PREFLIGHT: Final = "OPTIONS"
ASKED_METHOD: Final = "Access-Control-Request-Method"  # what makes an OPTIONS a preflight
_KEPT_S: Final = 86_400  # seconds that a browser keeps an answer; it may have a lower limit
_EXPOSED: Final = (
    ("Access-Control-Expose-Headers", "Date, Retry-After"),  # the trusted clock, and when to retry
)
_ALLOWED: Final = (
    ("Access-Control-Allow-Headers", f"Authorization, Content-Type, {HEADER}"),
    ("Access-Control-Max-Age", str(_KEPT_S)),
)


class Cors:
    """The headers that let listed origins read what a device is answered."""

    def __init__(self, origins: Collection[str]) -> None:
        """Let in *origins*, each as a browser writes it."""
        self.origins = frozenset(origins)

    def headers(self, path: str, named: Sequence[str]) -> Headers:
        """Return the extra headers of an answer on *path*.

        Args: named: the values of Origin: one or none.
        """
        if not self.origins or path not in METHODS:
            return ()
        vary = ("Vary", "Origin")
        if not self._is_listed(named):
            return (vary,)
        return (vary, ("Access-Control-Allow-Origin", named[0]), *_EXPOSED)

    def preflight(self, path: str, named: Sequence[str]) -> Headers | None:
        """Return the headers of the answer to a preflight; None if the origin is let in nowhere.

        The answer is the same whichever method was asked for: the browser compares.
        """
        if path not in METHODS or not self._is_listed(named):
            return None
        allowed = ("Access-Control-Allow-Methods", METHODS[path])
        return (*self.headers(path, named), allowed, *_ALLOWED)

    def _is_listed(self, named: Sequence[str]) -> bool:
        return len(named) == 1 and named[0] in self.origins
