"""Log-in by a proxy: which proxies are believed, by which headers, and what each group may do.

A proxy that people log in to (OpenID Connect: oauth2-proxy, Authelia, a cloud's own) names them to
the collector in a header.  Anybody can send a header.  So it counts only on connections that come
from an address of ``HEARSAY_TRUSTED_PROXIES``: the socket's address, which no header can change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from .credentials import EVERY_APP, MAX_LABEL, READ, ROLES, Credential
from .errors import ConfigError, ForbiddenError

Network: TypeAlias = IPv4Network | IPv6Network

Grants: TypeAlias = Mapping[str, tuple[tuple[str, str], ...]]  # by group: app or EVERY_APP, role

_PROXIES: Final = "HEARSAY_TRUSTED_PROXIES"
_GROUPS: Final = "HEARSAY_GROUPS"
_EVERYBODY: Final = "*"  # group: all whom the proxy lets in

_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}", re.ASCII)
# What clients, or proxies on the way, write themselves.
_TAKEN: Final = frozenset(
    (
        *("authorization", "cookie", "forwarded", "host", "origin", "referer", "user-agent"),
        *("via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"),
    )
)
_WIDEST: Final = {4: 8, 6: 32}  # bits: what is wider is no proxy's network, and hardly meant
_APP: Final = re.compile(r"[a-z0-9_.]+|\*", re.ASCII)
_MAX_USER: Final = 254  # characters: the longest address of e-mail
_TAIL: Final = 10  # hexadecimal digits by which two long names differ


@dataclass(frozen=True)
class ProxyLogin:
    """Who is believed to name people, and what these may do."""

    networks: tuple[Network, ...]
    groups: Grants
    user_header: str = "X-Forwarded-User"
    groups_header: str = "X-Forwarded-Groups"

    def __str__(self) -> str:
        """Read ``X-Forwarded-User from 10.0.3.7/32; analysts=analyst``."""
        rights = (
            f"{group}={role if app == EVERY_APP else f'{app}:{role}'}"
            for group, grants in self.groups.items()
            for app, role in grants
        )
        return f"{self.user_header} from {', '.join(map(str, self.networks))}; {', '.join(rights)}"

    def is_trusted(self, peer: str) -> bool:
        """Return whether *peer*, the address of a socket, is one of the proxies."""
        try:
            address = ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)  # an IPv4 peer of a socket for both
        return any((mapped or address) in network for network in self.networks)

    def credential(self, peer: str, user: str, groups: str) -> Credential:
        """Return what the person *user*, a member of *groups*, may do.

        Args:   peer: the address that sent the headers.  user, groups: the headers as they came.
        Raises: ForbiddenError: it was no proxy of ours; the name is none; nothing is opened by it.
        """
        if not self.is_trusted(peer):
            raise ForbiddenError(
                f"{self.user_header} came from an address that is not in {_PROXIES}; go through the"
                " proxy that people log in to"
            )
        # Two headers of one name arrive as one with a comma: the first may be the visitor's own.
        if not user.isprintable() or "," in user or len(user) > _MAX_USER:
            raise ForbiddenError(
                f"{self.user_header} must hold one name: the proxy has to replace what visitors"
                " send in it, not to add to it"
            )
        named = {_EVERYBODY, *(group.strip() for group in groups.split(","))}
        grants = [grant for group in named for grant in self.groups.get(group, ())]
        if not grants:
            raise ForbiddenError(
                f"none of your groups opens anything here; the operator says in {_GROUPS} which do"
            )
        roles: dict[str, str] = {}
        for app, role in grants:
            roles[app] = max(role, roles.get(app, role), key=ROLES.index)
        return Credential(READ, label=label_of(user), roles=roles)

    @property
    def apps(self) -> frozenset[str]:
        """The apps that groups name."""
        return frozenset(app for grants in self.groups.values() for app, _ in grants) - {EVERY_APP}


def label_of(user: str) -> str:
    """Return *user* as the label of a credential: a long name keeps its begin, and a hash."""
    if len(user) <= MAX_LABEL:
        return user
    return f"{user[: MAX_LABEL - _TAIL - 1]}~{hashlib.sha256(user.encode()).hexdigest()[:_TAIL]}"


def require_apps(login: ProxyLogin | None, known: Sequence[str]) -> None:
    """Raise ConfigError if *login* gives a role in an app that is not *known*."""
    unknown = sorted((login.apps if login else frozenset()) - set(known))
    if unknown:
        rule = f"is the app of no registry file; known are {', '.join(known)}"
        raise ConfigError(_GROUPS, unknown[0], rule)


def networks_of(name: str, text: str) -> tuple[Network, ...]:
    """Return the networks in *text*, the value of setting *name*.  Raises ConfigError."""
    return tuple(_network(name, part.strip()) for part in text.split(",")) if text else ()


def _network(name: str, text: str) -> Network:
    try:
        network = ip_network(text)
    except ValueError:
        rule = "must be addresses or networks, by commas, such as 127.0.0.1,10.0.3.0/28"
        raise ConfigError(name, text, rule) from None
    if network.prefixlen < _WIDEST[network.version]:
        rule = "would believe a header of whole parts of the internet: write the proxy's address"
        raise ConfigError(name, text, rule)
    return network


def header_of(name: str, header: str) -> str:
    """Return *header*, the value of setting *name*.  Raises ConfigError: no proxy writes it."""
    if not _HEADER.fullmatch(header) or header.lower() in _TAKEN:
        rule = "must be the name of a header that only the proxy writes, such as X-Forwarded-User"
        raise ConfigError(name, header, rule)
    return header


def grants_of(name: str, text: str) -> Grants:
    """Return what groups may do by *text*, the value of setting *name*.  Raises ConfigError."""
    groups: dict[str, tuple[tuple[str, str], ...]] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        group, _, right = part.rpartition("=")
        app, _, role = right.strip().rpartition(":")
        if not group.strip() or role not in ROLES or not _APP.fullmatch(app or EVERY_APP):
            rule = f"must be group=role or group=app:role, of the roles {', '.join(ROLES)}"
            raise ConfigError(name, part, rule)
        group = group.strip()
        groups[group] = (*groups.get(group, ()), (app or EVERY_APP, role))
    return groups
