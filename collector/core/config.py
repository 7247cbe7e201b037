"""The collector's settings, read once from the environment and checked as a whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from .cells import LAST_DAYS
from .credentials import ADMIN, ANALYST, GATEWAY, OPERATOR, READ, WRITE, Credential, digest_of
from .errors import ConfigError, unread
from .proxies import ProxyLogin, proxy_login

STANDARD: Final = "standard"  # append-only file, synced every second: up to 2 s lost at power loss
STRICT: Final = "strict"  # append-only file, synced at every write: nothing acknowledged is lost
HA: Final = "ha"  # strict, and a replica confirmed: nothing acknowledged is lost with a machine
VOLATILE: Final = "volatile"  # nothing is kept: tests and demos
SHARDS: Final = 4  # of a store, unless its operator says otherwise
PROFILES: Final = (STANDARD, STRICT, HA, VOLATILE)
MIN_SECRET: Final = 16  # characters of a key, which tells applications apart and is no secret
_MIN_TOKEN: Final = 24  # characters of a token: 144 bits by chance; generated ones have 43
MAX_SHARDS: Final = 1024
# What client_sdk reads; an operator may have said yes or no to the telemetry of other programs.
OF_DEVICES: Final = frozenset(("HEARSAY_TELEMETRY", "HEARSAY_IS_CHILD"))
KNOWN: Final = frozenset(
    f"HEARSAY_{name}"
    for name in (
        "REGISTRY",
        "PREFIX",
        "SHARDS",
        "PROFILE",
        "HOST",
        "PORT",
        "ORIGIN",
        "ORIGINS",
        "HEARTBEAT",
        "OPEN_DASHBOARD",
        "DEVELOPMENT",
        "START_TOKEN",
        "MAX_BACKLOG",
        "KEY_RATE",
        "NEW_TALLIES_MB",
        "DOCUMENTS_MB",
        "ARCHIVE",
        "ARCHIVE_DAYS",
        "KEEP_DAYS",
        "RELAY_OPERATOR",
        "COLLUDING",
        "RETIRED",
        "OBLIVIOUS_KEYS",
        "ISSUER_KEYS",
        "REQUIRE_TOKEN",
        "WATCHES",
        "TRUSTED_PROXIES",
        "USER_HEADER",
        "GROUPS_HEADER",
        "GROUPS",
        "BOARDS",
        "EMBED_ORIGINS",
        "AUDIT",
        "URL",
        *(
            f"{name}{end}"
            for name in ("WRITE_KEY", "GATEWAY_KEY", "READ_TOKEN", "ADMIN_TOKEN", "QUERY_URL")
            for end in ("", "_FILE")
        ),
    )
)
HIDDEN: Final = "***"  # shown instead of a key or token
_NAME: Final = re.compile(r"[a-z0-9.:-]+", re.ASCII)  # of a host, as browsers write it
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)  # https, or that of an application
_DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}  # browsers leave them out
_EVERYBODY: Final[Mapping[str, str]] = {
    "*": "would let every site do so, from its visitors' browsers; list the origins of yours",
    "null": "is the origin of files and of any page in a sandbox; serve yours from an origin",
}
_MAX_DIGITS: Final = 9  # of an integer setting
_LONGEST_NAME: Final = 100  # characters
_SHARE: Final = re.compile(r"0(\.[0-9]{1,9})?", re.ASCII)
_LOCAL_STORE: Final = "redis://127.0.0.1:6379/0"
_SCHEMES: Final = ("redis", "rediss", "unix", "redis-cluster", "rediss-cluster")
# What the environment's secrets allow: bootstrap, until `hearsay keys` has made better ones.
_BOOTSTRAP: Final[Mapping[str, Credential]] = {
    "HEARSAY_WRITE_KEY": Credential(WRITE),
    "HEARSAY_GATEWAY_KEY": Credential(GATEWAY),
    "HEARSAY_READ_TOKEN": Credential(READ, role=ANALYST),
    "HEARSAY_ADMIN_TOKEN": Credential(ADMIN),
    "HEARSAY_START_TOKEN": Credential(READ, role=OPERATOR),
}
_PUBLIC: Final = frozenset({"HEARSAY_WRITE_KEY", "HEARSAY_GATEWAY_KEY"})


@dataclass(frozen=True)
class RelayTerms:
    """What an operator declares of the relay: who runs it, and which part of devices is not honest.

    Without an operator nothing is claimed of reports that come through a relay.
    """

    operator: str = ""
    colluding: Fraction = Fraction(0)


@dataclass(frozen=True)
class Config:
    """Settings of web process and worker.  Keys and tokens are held as SHA-256 digests only."""

    registry_paths: tuple[str, ...]
    redis_url: str = field(repr=False)  # may hold a password
    query_url: str = field(repr=False)  # the same store, perhaps as a user who may only read
    prefix: str
    shards: int
    profile: str
    credentials: Mapping[bytes, Credential]  # by digest; those of the environment only
    host: str
    port: int
    open_dashboard: bool  # each start makes a token and prints its link; on loopback only
    max_backlog: int = 1_000_000  # entries waiting to be folded from which no uploads are taken
    key_rate: int = 5_000  # uploads a second that a web process takes of one key
    # 10^6 bytes of tallies that a write key may begin a day; None: a part of the memory; 0: any
    new_tallies_mb: int | None = None
    documents_mb: int = 16  # MiB of boards, questions, notes and links, older versions too
    archive: str = ""  # folder to which folded reports are archived; "" for nowhere
    archive_days: int = 90  # days after the fold until an archived report is deleted
    origin: str = ""  # where browsers see the pages; "" to go by the Host of each request
    keep_days: int = 0  # days after an epoch until hearsay prune deletes it; 0 for never
    development: bool = False  # keep the last reports in memory, for hearsay tail
    origins: tuple[str, ...] = ()  # whose pages may report from a browser
    retired: str = ""  # file of the list of retired metrics; "" for none
    oblivious_keys: str = ""  # file of the keys that open capsules; "" to open none
    issuer_keys: tuple[str, ...] = ()  # public files of who gives tokens; () to look at none
    require_token: bool = False  # whether uploads of devices must have one
    watches: str = ""  # file of what hearsay watch asks; "" for none
    audit: bool = False  # whether it is counted who asks for what
    proxy: ProxyLogin | None = None  # that names the people who come through it
    boards: str = ""  # file of boards, saved questions and notes; "" for none
    embed_origins: tuple[str, ...] = ()  # whose pages may show a shared link in a frame
    relay: RelayTerms = RelayTerms()

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Config:
        """Read ``HEARSAY_*``, ``REDIS_URL`` and ``REDIS_URL_FILE``.

        Raises: ConfigError: names the variable, never a secret.
        """
        _require_known(env)
        _require_no_debugger(env)
        host = _address(env.get("HEARSAY_HOST", "127.0.0.1"))
        open_dashboard = _one_of(env, "HEARSAY_OPEN_DASHBOARD", "0", ("0", "1")) == "1"
        if open_dashboard and not is_loopback(host):
            raise ConfigError("HEARSAY_OPEN_DASHBOARD", 1, "needs a loopback HEARSAY_HOST")
        profile = _one_of(env, "HEARSAY_PROFILE", STANDARD, PROFILES)
        development = _one_of(env, "HEARSAY_DEVELOPMENT", "0", ("0", "1")) == "1"
        if development and not (is_loopback(host) and profile == VOLATILE):
            rule = f"needs a loopback HEARSAY_HOST and HEARSAY_PROFILE={VOLATILE}"
            raise ConfigError("HEARSAY_DEVELOPMENT", 1, rule)
        paths = tuple(path for path in env.get("HEARSAY_REGISTRY", "").split(os.pathsep) if path)
        if not paths:
            raise ConfigError("HEARSAY_REGISTRY", "", "must name at least one metrics.toml")
        redis_url = _store_url(env, "REDIS_URL", _LOCAL_STORE)
        return cls(
            registry_paths=paths,
            redis_url=redis_url,
            query_url=_store_url(env, "HEARSAY_QUERY_URL", redis_url),
            prefix=env.get("HEARSAY_PREFIX", "hearsay"),
            shards=_integer(env, "HEARSAY_SHARDS", SHARDS, 1, MAX_SHARDS),
            profile=profile,
            credentials=_credentials(env),
            host=host,
            port=_integer(env, "HEARSAY_PORT", 8000, 1, 65_535),
            open_dashboard=open_dashboard,
            max_backlog=_integer(env, "HEARSAY_MAX_BACKLOG", cls.max_backlog, 1, 10**9 - 1),
            key_rate=_integer(env, "HEARSAY_KEY_RATE", cls.key_rate, 1, 10**6),
            new_tallies_mb=_integer(env, "HEARSAY_NEW_TALLIES_MB", 0, 0, 10**6)
            if env.get("HEARSAY_NEW_TALLIES_MB")
            else None,
            archive=env.get("HEARSAY_ARCHIVE", ""),
            documents_mb=_integer(env, "HEARSAY_DOCUMENTS_MB", cls.documents_mb, 1, 10**4),
            archive_days=_integer(env, "HEARSAY_ARCHIVE_DAYS", cls.archive_days, 1, 3_650),
            origin=_origin(env.get("HEARSAY_ORIGIN", "")),
            origins=_origins(env, "HEARSAY_ORIGINS"),
            keep_days=_keep_days(env),
            development=development,
            retired=env.get("HEARSAY_RETIRED", ""),
            oblivious_keys=env.get("HEARSAY_OBLIVIOUS_KEYS", ""),
            issuer_keys=_issuer_keys(env),
            require_token=_one_of(env, "HEARSAY_REQUIRE_TOKEN", "0", ("0", "1")) == "1",
            watches=env.get("HEARSAY_WATCHES", ""),
            audit=_one_of(env, "HEARSAY_AUDIT", "0", ("0", "1")) == "1",
            proxy=proxy_login(env),
            boards=env.get("HEARSAY_BOARDS", ""),
            embed_origins=_origins(env, "HEARSAY_EMBED_ORIGINS"),
            relay=_relay(env),
        )


def _keep_days(env: Mapping[str, str]) -> int:
    days = _integer(env, "HEARSAY_KEEP_DAYS", Config.keep_days, 0, 36_500)
    if 0 < days <= LAST_DAYS[-1]:
        rule = f"must be 0 for ever, or above {LAST_DAYS[-1]}: so long reports may still come"
        raise ConfigError("HEARSAY_KEEP_DAYS", days, rule)
    return days


def _relay(env: Mapping[str, str]) -> RelayTerms:
    operator = env.get("HEARSAY_RELAY_OPERATOR", "").strip()
    if len(operator) > _LONGEST_NAME or not operator.isprintable():
        rule = f"must be a name of at most {_LONGEST_NAME} printable characters"
        raise ConfigError("HEARSAY_RELAY_OPERATOR", HIDDEN, rule)
    share = env.get("HEARSAY_COLLUDING", "0")
    if not _SHARE.fullmatch(share):
        rule = "must be a decimal from 0 to below 1, such as 0.05: a part of all devices"
        raise ConfigError("HEARSAY_COLLUDING", share, rule)
    if Fraction(share) and not operator:
        raise ConfigError("HEARSAY_COLLUDING", share, "needs HEARSAY_RELAY_OPERATOR")
    return RelayTerms(operator, Fraction(share))


def _issuer_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files of issuers' keys.  Raises ConfigError: none, and tokens are required."""
    paths = tuple(path for path in env.get("HEARSAY_ISSUER_KEYS", "").split(os.pathsep) if path)
    if not paths and env.get("HEARSAY_REQUIRE_TOKEN") == "1":
        rule = "needs HEARSAY_ISSUER_KEYS, or no upload could be taken"
        raise ConfigError("HEARSAY_REQUIRE_TOKEN", 1, rule)
    return paths


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach *host*."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _require_known(env: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable that looks like ours and is not: a typing error."""
    ours = {name for name in env if name.startswith("HEARSAY_")}
    unknown = sorted(
        name for name in ours - KNOWN - OF_DEVICES if not name.startswith("HEARSAY_TESTS_")
    )
    if unknown:
        raise ConfigError(
            unknown[0], HIDDEN, f"is no setting; known are {', '.join(sorted(KNOWN))}"
        )


def _address(host: str) -> str:
    try:
        return "127.0.0.1" if host == "localhost" else str(ip_address(host))
    except ValueError:
        raise ConfigError("HEARSAY_HOST", host, "must be an IP address or localhost") from None


def _origin(text: str) -> str:
    """Return the origin *text* as browsers write it.  Raises ConfigError."""
    rule = "must be https://name or https://name:port, and nothing behind; http for this machine"
    scheme, host, written = _parts_of(text)
    is_safe = scheme == "https" or (scheme == "http" and is_loopback(host))
    if text and not (is_safe and text == written):
        raise ConfigError("HEARSAY_ORIGIN", text, rule)
    return text


def _origins(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the origins in variable *name*, by commas, each once.  Raises ConfigError."""
    parts = (part.strip() for part in env.get(name, "").split(","))
    return checked_origins(name, (part for part in parts if part))


def checked_origins(name: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Return *texts*, the value of setting *name*, each once.  Raises ConfigError."""
    origins = tuple(dict.fromkeys(texts))
    for origin in origins:
        if origin in _EVERYBODY:
            raise ConfigError(name, origin, _EVERYBODY[origin])
        scheme, host, written = _parts_of(origin)
        is_plain = scheme == "http" and not is_loopback(host)
        if not _SCHEME.fullmatch(scheme) or is_plain or origin != written:
            rule = (
                "must be an origin as browsers send it, such as https://app.example.org or"
                " https://app.example.org:8443: no path, no default port; http for this machine"
            )
            raise ConfigError(name, origin, rule)
    return origins


def _parts_of(origin: str) -> tuple[str, str, str]:
    """Return scheme and host of *origin*, and how a browser writes it: "" if it is none."""
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", "", ""
    if not _NAME.fullmatch(host):
        return parts.scheme, host, ""
    name = f"[{host}]" if ":" in host else host
    behind = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    return parts.scheme, host, f"{parts.scheme}://{name}{behind}"


def _require_no_debugger(env: Mapping[str, str]) -> None:
    """Raise ConfigError if Flask would run with its debugger, which runs what a visitor types."""
    if env.get("FLASK_DEBUG", "0").lower() not in ("", "0", "false", "no"):
        raise ConfigError("FLASK_DEBUG", 1, "must not be set for a collector")


def _store_url(env: Mapping[str, str], name: str, default: str) -> str:
    """Return the store's address from variable *name*, or from the file that *name*_FILE names.

    Raises: ConfigError: also if a store on another machine lets everybody in.
    """
    if env.get(name) and env.get(f"{name}_FILE"):
        raise ConfigError(name, HIDDEN, f"and {name}_FILE must not both be set")
    url = _text_of(env, name) or default
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in _SCHEMES:
        rule = f"must begin with {', '.join(f'{scheme}://' for scheme in _SCHEMES)}"
        raise ConfigError(name, HIDDEN, rule)
    user, _, places = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")
    try:  # one by one: some Pythons refuse a list in which not each place has brackets
        hosts = [urlsplit(f"//{place}").hostname or "" for place in places.split(",")]
    except ValueError:  # not even as a cause: the address may hold a password
        raise ConfigError(name, HIDDEN, "is no address") from None
    if scheme.lower() != "unix" and not user.partition(":")[2] and not all(map(is_loopback, hosts)):
        rule = "must hold a user and a password: the store is not on this machine"
        raise ConfigError(name, HIDDEN, rule)
    return url


def _credentials(env: Mapping[str, str]) -> dict[bytes, Credential]:
    """Return what the keys and tokens of the environment allow, by their digests."""
    digests = [(name, _secret(env, name)) for name in _BOOTSTRAP]
    credentials = {digest: _BOOTSTRAP[name] for name, digest in digests if digest}
    if len(credentials) != sum(digest is not None for _, digest in digests):
        rule = "must all differ: each allows something else"
        raise ConfigError(", ".join(_BOOTSTRAP), HIDDEN, rule)
    return credentials


def _one_of(env: Mapping[str, str], name: str, default: str, allowed: tuple[str, ...]) -> str:
    text = env.get(name, default)
    if text not in allowed:
        raise ConfigError(name, text, f"must be one of {', '.join(allowed)}")
    return text


def _secret(env: Mapping[str, str], name: str) -> bytes | None:
    """Return the digest of the secret that *name* or *name*_FILE gives; None without one."""
    secret = _text_of(env, name)
    if not secret:
        return None
    if not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise ConfigError(name, HIDDEN, "must be printable ASCII without spaces, as a header holds")
    least = MIN_SECRET if name in _PUBLIC else _MIN_TOKEN
    if len(secret) < least:
        raise ConfigError(name, HIDDEN, f"must have at least {least} characters")
    return digest_of(secret)


def _text_of(env: Mapping[str, str], name: str) -> str:
    """Return the text of variable *name*, or of the file that *name*_FILE names; "" of neither."""
    path = env.get(f"{name}_FILE")
    if not path:
        return env.get(name, "")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        # from None: a decoding error holds the bytes of the secret
        raise ConfigError(f"{name}_FILE", path, unread(error)) from None
    if not text:
        raise ConfigError(f"{name}_FILE", path, "is empty")
    return text


def _integer(env: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = env.get(name, str(default))
    short = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    if not (short and least <= int(text) <= most):
        raise ConfigError(name, text, f"must be an integer from {least} to {most}")
    return int(text)
