"""The collector's settings: a table with one row each, read once and checked as a whole.

A row is a field of ``Config``, with its variable, parser, default and help.  What is read, what is
known, what commands show and what the page of settings says follows from it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Final, Self

from . import settings as parse
from .cells import LAST_DAYS
from .credentials import ADMIN, ANALYST, GATEWAY, OPERATOR, READ, WRITE, Credential
from .errors import ConfigError
from .proxies import Grants, Network, ProxyLogin, grants_of, header_of, networks_of
from .settings import HIDDEN, ROW, Setting, is_loopback, setting

STANDARD: Final = "standard"  # append-only file, synced every second: up to 2 s lost at power loss
STRICT: Final = "strict"  # append-only file, synced at every write: nothing acknowledged is lost
HA: Final = "ha"  # strict, and a replica confirmed: nothing acknowledged is lost with a machine
VOLATILE: Final = "volatile"  # nothing is kept: tests and demos
PROFILES: Final = (STANDARD, STRICT, HA, VOLATILE)
SHARDS: Final = 4  # of a store, unless its operator says otherwise
MAX_SHARDS: Final = 1024
MIN_SECRET: Final = 16  # characters of a key, which tells applications apart and is no secret
_MIN_TOKEN: Final = 24  # characters of a token: 144 bits by chance; generated ones have 43
# What client_sdk reads; an operator may have said yes or no to the telemetry of other programs.
OF_DEVICES: Final = frozenset(("HEARSAY_TELEMETRY", "HEARSAY_IS_CHILD"))
# What the environment's secrets allow: bootstrap, until `hearsay keys` has made better ones.
_ALLOWED: Final[Mapping[str, Credential]] = {
    "write_key": Credential(WRITE),
    "gateway_key": Credential(GATEWAY),
    "read_token": Credential(READ, role=ANALYST),
    "admin_token": Credential(ADMIN),
    "start_token": Credential(READ, role=OPERATOR),
}


def _days_kept(name: str, text: str) -> int:
    days = parse.integer(0, 36_500)(name, text)
    if 0 < days <= LAST_DAYS[-1]:
        rule = f"must be 0 for ever, or above {LAST_DAYS[-1]}: reports may still come for so long"
        raise ConfigError(name, days, rule)
    return days


@dataclass(frozen=True)
class RelayTerms:
    """What an operator declares of the relay: its operator, and which part of devices is dishonest.

    Without an operator nothing is claimed of reports that come through a relay.
    """

    operator: str = ""
    colluding: Fraction = Fraction(0)


@dataclass(frozen=True)
class Config:
    """The table of settings.  Keys and tokens are held as SHA-256 digests only."""

    registry_paths: tuple[str, ...] = setting(
        "HEARSAY_REGISTRY", parse.registries,
        "`metrics.toml`; more files, separated like `PATH`, for older definitions that devices"
        " still report",
        unset="needed",
    )  # fmt: skip
    redis_url: str = setting(
        "REDIS_URL", parse.store_url,
        "the store: Redis ≥ 7.0 or Valkey ≥ 7.2; with user and password unless it is on this"
        " machine; `redis-cluster://[user:password@]host:port,host:port` for a cluster",
        "redis://127.0.0.1:6379/0", secret=True,
    )  # fmt: skip
    query_url: str = setting(
        "HEARSAY_QUERY_URL", parse.store_url,
        "the same store, as the user with whom `serve` reads tallies",
        unset="as `REDIS_URL`", secret=True,
    )  # fmt: skip
    prefix: str = setting("HEARSAY_PREFIX", parse.text, "begins every key", "hearsay")
    shards: int = setting(
        "HEARSAY_SHARDS", parse.integer(1, MAX_SHARDS),
        "spread of the keys; fixed at the first `hearsay init`", SHARDS,
    )  # fmt: skip
    profile: str = setting(
        "HEARSAY_PROFILE", parse.one_of(*PROFILES),
        "`standard` needs an append-only file, synced every second; `strict` needs it synced at"
        " every write; `ha` is `strict`, and acknowledges an upload only once a replica has"
        " confirmed it; `volatile` keeps nothing",
        STANDARD,
    )  # fmt: skip
    write_key: bytes | None = setting(
        "HEARSAY_WRITE_KEY", parse.digest(MIN_SECRET),
        "key of devices: bodies up to 64 KiB, of one report of each metric and epoch; this and the"
        " next three work besides those of `hearsay keys`",
        secret=True,
    )  # fmt: skip
    gateway_key: bytes | None = setting(
        "HEARSAY_GATEWAY_KEY",
        parse.digest(MIN_SECRET),
        "key of gateways: bodies up to 8 MiB",
        secret=True,
    )
    read_token: bytes | None = setting(
        "HEARSAY_READ_TOKEN", parse.digest(_MIN_TOKEN), "token of analysts", secret=True
    )
    admin_token: bytes | None = setting(
        "HEARSAY_ADMIN_TOKEN",
        parse.digest(_MIN_TOKEN),
        "token for the state of the collector",
        secret=True,
    )
    start_token: bytes | None = setting(
        "HEARSAY_START_TOKEN", parse.digest(_MIN_TOKEN),
        "the token of `HEARSAY_OPEN_DASHBOARD`, where another program prints the link",
        unset="made anew", secret=True,
    )  # fmt: skip
    host: str = setting("HEARSAY_HOST", parse.address, "address to listen on", "127.0.0.1")
    port: int = setting("HEARSAY_PORT", parse.integer(1, 65_535), "port to listen on", 8000)
    max_backlog: int = setting(
        "HEARSAY_MAX_BACKLOG", parse.integer(1, 10**9 - 1),
        "entries waiting to be folded from which uploads are refused with 503", 1_000_000,
    )  # fmt: skip
    key_rate: int = setting(
        "HEARSAY_KEY_RATE", parse.integer(1, 10**6),
        "uploads a second that a web process takes of one key; beyond them 429. Large uploads, and"
        " those that are dear to fold, count as several",
        5_000,
    )  # fmt: skip
    new_tallies_mb: int | None = setting(
        "HEARSAY_NEW_TALLIES_MB", parse.megabytes,
        "10⁶ bytes of [new tallies](security.md#hostile-input) that uploads under one write key may"
        " begin in a UTC day; 0 for no limit",
        unset="10 % of `maxmemory`",
    )  # fmt: skip
    documents_mb: int = setting(
        "HEARSAY_DOCUMENTS_MB", parse.integer(1, 10**4),
        "MiB of [boards, questions, notes and links](boards.md#pin), older versions too", 16,
    )  # fmt: skip
    origin: str = setting(
        "HEARSAY_ORIGIN", parse.origin,
        "where browsers see the pages, such as `https://stats.example.org`;"
        " [set it behind a proxy](security.md#what-a-browser-is-told)",
        unset="the `Host` of each request",
    )  # fmt: skip
    origins: tuple[str, ...] = setting(
        "HEARSAY_ORIGINS", parse.origins,
        "origins whose [pages may report](security.md#pages-of-other-sites-that-report) from a"
        " browser, separated by commas",
    )  # fmt: skip
    open_dashboard: bool = setting(
        "HEARSAY_OPEN_DASHBOARD", parse.flag,
        "1 prints a link at each start that logs an operator in; on a loopback host only",
        0,
    )  # fmt: skip
    development: bool = setting(
        "HEARSAY_DEVELOPMENT", parse.flag,
        "1 keeps the last 100 accepted reports in memory, for `hearsay tail`; with"
        " `HEARSAY_PROFILE=volatile` and a loopback host only",
        0,
    )  # fmt: skip
    archive: str = setting(
        "HEARSAY_ARCHIVE", parse.text,
        "folder to which folded reports are [archived](archive.md); workers and `hearsay archive`"
        " need it",
    )  # fmt: skip
    archive_days: int = setting(
        "HEARSAY_ARCHIVE_DAYS", parse.integer(1, 3_650),
        "days after the fold until an archived report is deleted", 90,
    )  # fmt: skip
    keep_days: int = setting(
        "HEARSAY_KEEP_DAYS", _days_kept,
        "days after its end that an epoch is kept, 0 for ever; `hearsay prune` needs it, or an"
        " option",
        0,
    )  # fmt: skip
    relay_operator: str = setting(
        "HEARSAY_RELAY_OPERATOR", parse.label,
        "name of the relay's operator, if that is not you; shown to the people measured. Without it"
        " no [ε of shuffled reports](../ask/shuffled.md) is stated",
    )  # fmt: skip
    colluding: Fraction = setting(
        "HEARSAY_COLLUDING", parse.share,
        "part of the relayed reports, of every group, that you take to be forged or of devices that"
        " work with the collector",
        0, needs="relay_operator",
    )  # fmt: skip
    trusted_proxies: tuple[Network, ...] = setting(
        "HEARSAY_TRUSTED_PROXIES", networks_of,
        "addresses of proxies that [name the person who is logged"
        " in](security.md#log-in-by-a-proxy), by commas",
        needs="groups",
    )  # fmt: skip
    groups: Grants = setting(
        "HEARSAY_GROUPS", grants_of,
        "what groups may do: `analysts=analyst,team=shop:owner,*=viewer`",
        needs="trusted_proxies",
    )  # fmt: skip
    user_header: str = setting(
        "HEARSAY_USER_HEADER", header_of,
        "the header in which a trusted proxy names the person who is logged in",
        ProxyLogin.user_header, needs="trusted_proxies",
    )  # fmt: skip
    groups_header: str = setting(
        "HEARSAY_GROUPS_HEADER", header_of, "the header of the groups of that person",
        ProxyLogin.groups_header, needs="trusted_proxies",
    )  # fmt: skip
    audit: bool = setting(
        "HEARSAY_AUDIT", parse.flag,
        "1 counts [which person asks for what](security.md#who-asked-for-what), a day at a time", 0,
    )  # fmt: skip
    watches: str = setting(
        "HEARSAY_WATCHES", parse.text,
        "file of the [watches](watch.md) that `hearsay watch` evaluates",
    )  # fmt: skip
    retired: str = setting(
        "HEARSAY_RETIRED", parse.text,
        "list of [retired metrics](../ask/registry.md#retiring-a-metric), open to everybody at"
        " `/v1/retired`",
    )  # fmt: skip
    oblivious_keys: str = setting(
        "HEARSAY_OBLIVIOUS_KEYS", parse.text,
        "file of `hearsay oblivious-key`, which opens what came [through a"
        " relay](../guide/relay.md); no other user may read it",
    )  # fmt: skip
    issuer_keys: tuple[str, ...] = setting(
        "HEARSAY_ISSUER_KEYS", parse.paths,
        "public files of `hearsay issuer-keys`, separated as in `PATH`, by which uploads with a"
        " [one-time token](../guide/tokens.md) count as *attested*",
    )  # fmt: skip
    require_token: bool = setting(
        "HEARSAY_REQUIRE_TOKEN", parse.flag,
        "1 refuses what a write key sends without a good token", 0,
        needs="issuer_keys",
    )  # fmt: skip
    boards: str = setting(
        "HEARSAY_BOARDS", parse.text,
        "TOML file of [boards, saved questions and notes](boards.md#a-file)",
    )  # fmt: skip
    embed_origins: tuple[str, ...] = setting(
        "HEARSAY_EMBED_ORIGINS", parse.origins,
        "origins whose pages may show a [shared link](boards.md#share) in a frame, separated by"
        " commas",
    )  # fmt: skip
    url: str = setting(
        "HEARSAY_URL", parse.text,
        "the collector that `hearsay query`, `hearsay note` and `hearsay tail` ask, with"
        " `HEARSAY_READ_TOKEN`",
        "http://127.0.0.1:8000",
    )  # fmt: skip
    heartbeat: str = setting(
        "HEARSAY_HEARTBEAT", parse.text,
        "file that a worker touches at every round, for `hearsay worker --check`",
    )  # fmt: skip

    @classmethod
    def rows(cls) -> dict[str, Setting]:
        """Return the table, by field."""
        return {field.name: field.metadata[ROW] for field in fields(cls)}

    @classmethod
    def known(cls) -> frozenset[str]:
        """Return the variables that are read."""
        return frozenset(name for row in cls.rows().values() for name in row.names)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Self:
        """Read and check every setting.  Raises ConfigError: names the variable, never a secret."""
        rows = cls.rows()
        _require_known(env, cls.known())
        if env.get("FLASK_DEBUG", "0").lower() not in ("", "0", "false", "no"):
            # Flask's debugger runs what a visitor types
            raise ConfigError("FLASK_DEBUG", 1, "must not be set for a collector")
        values: dict[str, Any] = {
            name: row.parse(row.name, row.text(env)) for name, row in rows.items()
        }
        for name, row in rows.items():
            other = rows.get(row.needs)
            if other and row.is_set(values[name]) and not other.is_set(values[row.needs]):
                raise ConfigError(row.name, row.text(env), f"needs {other.name}")
        values["query_url"] = values["query_url"] or values["redis_url"]
        config = cls(**values)
        config._require_whole()
        return config

    def _require_whole(self) -> None:
        """Raise ConfigError for settings that do not go together."""
        is_local = is_loopback(self.host)
        if self.open_dashboard and not is_local:
            raise ConfigError("HEARSAY_OPEN_DASHBOARD", 1, "needs a loopback HEARSAY_HOST")
        if self.development and not (is_local and self.profile == VOLATILE):
            rule = f"needs a loopback HEARSAY_HOST and HEARSAY_PROFILE={VOLATILE}"
            raise ConfigError("HEARSAY_DEVELOPMENT", 1, rule)
        if self.user_header.lower() == self.groups_header.lower():
            rule = "must be another than HEARSAY_USER_HEADER"
            raise ConfigError("HEARSAY_GROUPS_HEADER", self.groups_header, rule)
        if len(self.credentials) != sum(getattr(self, name) is not None for name in _ALLOWED):
            names = ", ".join(self.rows()[name].name for name in _ALLOWED)
            raise ConfigError(names, HIDDEN, "must all differ: each allows something else")

    @property
    def credentials(self) -> dict[bytes, Credential]:
        """What the keys and tokens of the environment allow, by their digests."""
        return {digest: what for name, what in _ALLOWED.items() if (digest := getattr(self, name))}

    @property
    def relay(self) -> RelayTerms:
        """What is declared of the relay."""
        return RelayTerms(self.relay_operator, self.colluding)

    @property
    def proxy(self) -> ProxyLogin | None:
        """The log-in by a proxy, if there is one."""
        headers = self.user_header, self.groups_header
        return ProxyLogin(self.trusted_proxies, self.groups, *headers) if self.groups else None


def _require_known(env: Mapping[str, str], known: Collection[str]) -> None:
    """Raise ConfigError for a variable that looks like ours and is not: a typing error."""
    for name in sorted(env.keys() - known - OF_DEVICES):
        if name.startswith("HEARSAY_") and not name.startswith("HEARSAY_TESTS_"):
            raise ConfigError(name, HIDDEN, f"is no setting; known are {', '.join(sorted(known))}")
