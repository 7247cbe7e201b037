"""How much each network sends, without its name: under a salt that is soon forgotten.

A relay sees addresses; it is the only party that does.  It needs them for two things: that one
sender cannot take all room, and that one sender's messages do not pass for a crowd.  For both the
network is enough, and it is kept as a keyed hash whose key is drawn anew each minute, or for each
batch, and forgotten with what was counted.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Network: TypeAlias = IPv4Network | IPv6Network

PERIOD_S: Final = 60.0  # seconds for which a sender's messages are counted under one salt
_MOST_NETWORKS: Final = 65_536  # counted apart in that time: 10 MB; all further ones share a count
UNKNOWN: Final = b""  # the network of an address that cannot be read
_BITS: Final = {4: 24, 6: 48}  # of an address that are kept: no less than one site is given
_MARK: Final = 8  # bytes; two of 65,536 networks share a mark with probability 1e-10
_SALT: Final = 16  # bytes
_WITH_PORT: Final = re.compile(r"(?:([0-9.]+)|\[([^][]*)\]):[0-9]{1,5}", re.ASCII)


def new_salt() -> bytes:
    """Return a salt that no one can guess."""
    return secrets.token_bytes(_SALT)


def mark_of(network: bytes, salt: bytes) -> bytes:
    """Return what stands for *network* as long as *salt* is known."""
    return blake2b(network, key=salt, digest_size=_MARK).digest()


def network_of(
    client: str,
    forwarded: list[str],
    behind: tuple[Network, ...],
    tell: Callable[[], None] = lambda: None,
) -> bytes:
    """Return the network that a request came from: the first bytes of the sender's address.

    Args: client: the other end of the socket, with its port.
          forwarded: the X-Forwarded-For headers, believed from proxies in *behind* only, and of
          them the last entry, which the proxy has written itself, with or without a port.
          tell: called where a proxy names no address that can be read; its own counts then.
    """
    address = _address(client.rpartition(":")[0])
    if address is not None and any(address in network for network in behind):
        sender = _address(",".join(forwarded).rpartition(",")[2])
        if sender is None:
            tell()
        address = sender or address
    if address is None:
        return UNKNOWN
    return bytes([address.version]) + address.packed[: _BITS[address.version] // 8]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    text = text.strip()
    if match := _WITH_PORT.fullmatch(text):
        text = match[1] or match[2]
    try:
        address = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class Rates:
    """Counts the messages of each network in a minute."""

    def __init__(
        self, most: int, monotonic: Callable[[], float], networks: int = _MOST_NETWORKS
    ) -> None:
        """Let each network send *most* messages a minute, by the clock *monotonic*.

        Args: networks: that are counted apart.
        """
        self._most, self._monotonic, self._networks = most, monotonic, networks
        self._until, self._salt = float("-inf"), b""
        self._counts: Counter[bytes] = Counter()

    def admit(self, network: bytes) -> bool:
        """Count a message of *network*; return whether it may be taken."""
        now = self._monotonic()
        if now >= self._until:
            self._until, self._salt = now + PERIOD_S, new_salt()
            self._counts.clear()
        mark = mark_of(network, self._salt)
        if mark not in self._counts and len(self._counts) >= self._networks:
            mark = UNKNOWN
        self._counts[mark] += 1
        return self._counts[mark] <= self._most
