"""Log-in by a proxy: which proxies are believed, by which headers, and what each group may do.

A proxy that people log in to (OpenID Connect: oauth2-proxy, Authelia, a cloud's own) names them to
the collector in a header.  Anybody can send a header.  So it counts only on connections that come
from an address of ``HEARSAY_TRUSTED_PROXIES``: that of the socket, which no header can change.
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

PROXIES: Final = "HEARSAY_TRUSTED_PROXIES"
USER: Final = "HEARSAY_USER_HEADER"
GROUPS_HEADER: Final = "HEARSAY_GROUPS_HEADER"
GROUPS: Final = "HEARSAY_GROUPS"
EVERYBODY: Final = "*"  # group: all whom the proxy lets in

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
_TAIL: Final = 10  # hexadecimal digits that tell two long names apart


@dataclass(frozen=True)
class ProxyLogin:
    """Who is believed to name people, and what these may do."""

    networks: tuple[Network, ...]
    groups: Mapping[str, tuple[tuple[str, str], ...]]  # to (app or EVERY_APP, role)
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

        Args:   peer: the address that said so.  user, groups: the headers as they came.
        Raises: ForbiddenError: it was no proxy of ours; the name is none; nothing is opened by it.
        """
        if not self.is_trusted(peer):
            raise ForbiddenError(
                f"{self.user_header} came from an address that is not in {PROXIES}; go through the"
                " proxy that people log in to"
            )
        # Two headers of one name arrive as one with a comma: the first may be the visitor's own.
        if not user.isprintable() or "," in user or len(user) > _MAX_USER:
            raise ForbiddenError(
                f"{self.user_header} must hold one name: the proxy has to replace what visitors"
                " send in it, not to add to it"
            )
        named = {EVERYBODY, *(group.strip() for group in groups.split(","))}
        grants = [grant for group in named for grant in self.groups.get(group, ())]
        if not grants:
            raise ForbiddenError(
                f"none of your groups opens anything here; the operator says in {GROUPS} which do"
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
        raise ConfigError(GROUPS, unknown[0], rule)


def proxy_login(env: Mapping[str, str]) -> ProxyLogin | None:
    """Return the log-in by a proxy that *env* sets; None without ``HEARSAY_TRUSTED_PROXIES``.

    Raises: ConfigError: names the variable and the rule.
    """
    if not env.get(PROXIES):
        for name in (USER, GROUPS_HEADER, GROUPS):
            if env.get(name):
                raise ConfigError(name, env[name], f"needs {PROXIES}: whose header is believed")
        return None
    login = ProxyLogin(
        tuple(_network(part.strip()) for part in env[PROXIES].split(",")),
        _groups(env.get(GROUPS, "")),
        _header(env, USER, ProxyLogin.user_header),
        _header(env, GROUPS_HEADER, ProxyLogin.groups_header),
    )
    if login.user_header.lower() == login.groups_header.lower():
        raise ConfigError(GROUPS_HEADER, login.groups_header, f"must be another than {USER}")
    return login


def _network(text: str) -> Network:
    try:
        network = ip_network(text)
    except ValueError:
        rule = "must be addresses or networks, by commas, such as 127.0.0.1,10.0.3.0/28"
        raise ConfigError(PROXIES, text, rule) from None
    if network.prefixlen < _WIDEST[network.version]:
        rule = "would believe a header of whole parts of the internet: write the proxy's address"
        raise ConfigError(PROXIES, text, rule)
    return network


def _header(env: Mapping[str, str], name: str, default: str) -> str:
    header = env.get(name) or default
    if not _HEADER.fullmatch(header) or header.lower() in _TAKEN:
        rule = "must be the name of a header that only the proxy writes, such as X-Forwarded-User"
        raise ConfigError(name, header, rule)
    return header


def _groups(text: str) -> dict[str, tuple[tuple[str, str], ...]]:
    groups: dict[str, tuple[tuple[str, str], ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        group, _, right = part.rpartition("=")
        app, _, role = right.strip().rpartition(":")
        if not group.strip() or role not in ROLES or not _APP.fullmatch(app or EVERY_APP):
            rule = f"must be group=role or group=app:role, of the roles {', '.join(ROLES)}"
            raise ConfigError(GROUPS, part, rule)
        name = group.strip()
        groups[name] = (*groups.get(name, ()), (app or EVERY_APP, role))
    if not groups:
        rule = f"must give a role to a group, such as analysts=analyst, or {EVERYBODY}=viewer"
        raise ConfigError(GROUPS, text, rule)
    return groups
