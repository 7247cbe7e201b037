"""The store's users, each with the least that its process needs, as lines of an ACL file.

A function of the library runs with the rights of its caller, so each user also has the commands
inside the functions that it may call.  What no user of the application has: EVAL, CONFIG SET, KEYS,
FLUSH, DEBUG, MODULE, RESTORE, and keys of others.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from ..core.errors import ConfigError
from .keys import Keys

INIT: Final = "init"  # hearsay init, keys, fsck, quarantine: people, and once at each start
PRUNE: Final = "prune"  # hearsay prune, and nothing else
ARCHIVE: Final = "archive"  # hearsay archive, and hearsay refold to compare
INGEST: Final = "ingest"  # hearsay serve, taking uploads
WATCH: Final = "watch"  # hearsay watch and hearsay report
QUERY: Final = "query"  # hearsay serve, reading tallies
WORKER: Final = "worker"  # hearsay worker
COPY: Final = "copy"  # hearsay backup, and replicas: takes all that the store holds
USERS: Final = (INIT, INGEST, WORKER, QUERY, ARCHIVE, PRUNE, WATCH)
_OPTIONAL: Final = (
    PRUNE,
    WATCH,
    COPY,
)  # a store has these users only if there is an address for them
_HEALTH: Final = "health"

_EVERY: Final = "+ping +info +time"
_CLUSTER: Final = "+cluster|slots +asking +readonly"

# Of each user: rules of its own, with {p} for the prefix.  A part in parentheses is a right of its
# own, so that a command given for one key is not given for another.
_RULES: Final[Mapping[str, str]] = {
    INIT: (
        "~{p}:* +function|load +config|get +acl|dryrun +scan +fcall_ro|hearsay_counted"
        " +fcall|hearsay_version +fcall|hearsay_establish +fcall|hearsay_begin_shard"
        " +fcall|hearsay_replace +fcall|hearsay_requeue +fcall|hearsay_drop +fcall|hearsay_restore"
        " +fcall|hearsay_lose +fcall|hearsay_mark +fcall|hearsay_prune"
        " +fcall|hearsay_prune_key"
        " +get +set +mget +type +exists +strlen +getrange +bitfield +unlink +persist +expireat"
        " +hget +hset +hsetnx +hmget +hgetall +hvals +hlen +hexists +hincrby +hdel"
        " +smembers +sismember +sadd +srem"
        " +xadd +xdel +xack +xlen +xrange +xrevrange +xtrim +xpending +xgroup|create +xinfo|groups"
    ),
    INGEST: (
        "~{p}:{*}:seen:* ~{p}:{*}:stream ~{p}:{*}:counters ~{p}:{*}:state"
        " +fcall|hearsay_append_many +fcall|hearsay_ready +fcall|hearsay_version"
        " +sismember +xadd +sadd +hvals +hincrby +hmget +hget +hexists +xlen +wait"
        " (+get +hget +hmget %R~{p}:shards %R~{p}:profile %R~{p}:generation)"
        " (+hgetall %R~{p}:credentials) (+hgetall %R~{p}:suspicions)"
        " (+hget +hgetall %R~{p}:watch)"
        " (+hgetall +hset +expireat ~{p}:usage:* ~{p}:uploads:* ~{p}:activity:*)"
        # Boards, questions, notes and links, which people write in the pages.
        " (+fcall|hearsay_replace +hget +hset +hsetnx +hgetall +hlen +hdel +unlink"
        " ~{p}:documents:*)"
        " (+fcall_ro|hearsay_counted +hgetall +xlen"
        " %R~{p}:{*}:stream %R~{p}:{*}:quarantine %R~{p}:{*}:counters)"
        " (+xlen %R~{p}:{*}:archive) (+sismember %R~{p}:{*}:cells:*)"
    ),
    WORKER: (
        "~{p}:{*}:stream ~{p}:{*}:quarantine ~{p}:{*}:counters ~{p}:{*}:tally:* ~{p}:{*}:cells:*"
        " ~{p}:{*}:archive +fcall|hearsay_claim +fcall|hearsay_quarantine"
        " +fcall|hearsay_retire +fcall|hearsay_sweep +fcall|hearsay_now +fcall|hearsay_version"
        " +fcall_ro|hearsay_counted +fcall|hearsay_fold +fcall|hearsay_fold_archived"
        " +xautoclaim +xclaim +xreadgroup +xpending +xrange +xdel +xack +xlen +xinfo|consumers"
        " +xgroup|delconsumer +time +hvals +hincrby +hgetall +sismember +sadd +getrange +bitfield"
        " (+type +hget +hmget +hgetall +hlen +hincrby +hset +hdel ~{p}:{*}:tally:*)"
        " (+xadd ~{p}:{*}:quarantine ~{p}:{*}:archive)"
        " (+hset +expireat ~{p}:activity:*)"
        " (+fcall|hearsay_confirm_day +fcall|hearsay_forget_ids +hmget +hget +hexists +hset +unlink"
        " ~{p}:{*}:state ~{p}:{*}:seen:*)"
        " (+get +hget +hmget %R~{p}:shards %R~{p}:profile %R~{p}:generation)"
        " (+hget %R~{p}:{*}:pruned)"
        # To look at closed epochs, and to keep what is found.
        " (+smembers +mget +hgetall %R~{p}:{*}:tally:* %R~{p}:{*}:cells:*) (+hmget %R~{p}:pruned)"
        " (+hgetall +hset ~{p}:suspicions) (+hsetnx ~{p}:definitions)"
    ),
    QUERY: (
        "%R~{p}:{*}:tally:* %R~{p}:{*}:cells:* +smembers +mget +hgetall (+hmget %R~{p}:pruned)"
        " (+hgetall %R~{p}:exclusions)"
    ),
    ARCHIVE: (
        "~{p}:{*}:archive +xlen +xrange +xrevrange +xtrim +scan"
        " (+get +set ~{p}:archive)"
        " (+hmget %R~{p}:{*}:counters)"
        " (+mget +hgetall +exists %R~{p}:{*}:tally:*)"
        " (+smembers +sismember %R~{p}:{*}:cells:*)"
        " (+hgetall %R~{p}:pruned %R~{p}:exclusions)"
    ),
    WATCH: (
        "%R~{p}:{*}:tally:* %R~{p}:{*}:cells:* +smembers +mget +hgetall (+hmget %R~{p}:pruned)"
        " (+hgetall %R~{p}:exclusions)"
        " (+hget +hgetall +hset +hsetnx +hdel +fcall|hearsay_replace ~{p}:watch)"
    ),
    COPY: "+psync +replconf",
    PRUNE: (
        "~{p}:{*}:counters ~{p}:{*}:tally:* ~{p}:{*}:cells:* ~{p}:{*}:pruned ~{p}:pruned"
        " +fcall|hearsay_mark +fcall|hearsay_prune +scan +hget"
        " (+hset ~{p}:{*}:pruned ~{p}:pruned)"
        " (+hvals +hincrby ~{p}:{*}:counters)"
        " (+type +strlen +hlen +getrange +exists +unlink ~{p}:{*}:tally:*)"
        " (+smembers +srem ~{p}:{*}:cells:*)"
        " (+get %R~{p}:shards)"
    ),
}


def rules(user: str, prefix: str, database: int = 0) -> list[str]:
    """Return the rules of *user* as ACL SETUSER takes them, without a password.

    No user may choose a database, but the one of the store if it is not the first.

    Raises: ConfigError: the *prefix* cannot be used.
    """
    own = _RULES[user].replace("{p}", Keys(prefix, 1).prefix)
    select = f" +select|{database}" if database else ""
    return list(_parts(f"reset on {own} {_EVERY}{select} {_CLUSTER}"))


def acl_lines(prefix: str, passwords: Mapping[str, str], database: int = 0) -> Iterator[str]:
    """Yield the lines of an ACL file: a user for pings, *passwords*' users, the default off.

    A password is written as its SHA-256, so the file gives none away.
    """
    yield f"user {name_of(_HEALTH, prefix)} reset on nopass +ping"  # a health check has no secret
    for user, password in passwords.items():
        digest = hashlib.sha256(password.encode()).hexdigest()
        first, *rest = rules(user, prefix, database)
        yield " ".join(["user", name_of(user, prefix), first, f"#{digest}", *rest])
    # Off, so no one can log in as it; with rights, since Redis 7.0 replays its append-only file as
    # this user: without them it forgets at a restart whatever a function wrote.
    yield "user default reset off ~* &* +@all"  # last, since this user may run these lines


def name_of(user: str, prefix: str) -> str:
    """Return the name under which *user* of the deployment *prefix* logs in."""
    return f"{prefix}-{user}"


def passwords_in(folder: Path) -> dict[str, str]:
    """Return the password of each user, from the files ``<user>_url`` of *folder*.

    A user who only prunes, watches or copies is left out without a file.

    Raises: ConfigError: a file is missing, or holds no address with a password.
    """
    passwords: dict[str, str] = {}
    for user in (*USERS, COPY):
        path = folder / f"{user}_url"
        if user in _OPTIONAL and not path.exists():
            continue
        try:
            password = urlsplit(path.read_text(encoding="utf-8").strip()).password
        except (OSError, ValueError):  # not even as a cause: it may hold the password
            raise ConfigError("urls", path, "cannot be read as an address") from None
        if not password:
            raise ConfigError("urls", path, "must hold an address with a password")
        passwords[user] = unquote(password)
    return passwords


def database_in(folder: Path) -> int:
    """Return the number of the store's database, by the address of its first user in *folder*.

    Raises: ConfigError: there is no such file.
    """
    path = folder / f"{INIT}_url"
    try:
        parts = urlsplit(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):  # not even as a cause: it may hold the password
        raise ConfigError("urls", path, "cannot be read as an address") from None
    named = parse_qs(parts.query).get("db") or [parts.path.strip("/")]
    return int(named[0]) if named[0].isascii() and named[0].isdigit() else 0


def _parts(text: str) -> Iterator[str]:
    """Yield the words of *text*, each pair of parentheses as one."""
    for place, part in enumerate(text.replace(")", "(").split("(")):
        if place % 2:
            yield f"({part})"
        else:
            yield from part.split()


if __name__ == "__main__":  # as make secrets calls it, on a machine that has Python and no more
    of = Path(sys.argv[1])
    print(*acl_lines("hearsay", passwords_in(of), database_in(of)), sep="\n")
