"""Decide whether a server keeps what it acknowledges.  Pure: settings in, reasons out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..core.config import HA, STANDARD, STRICT, VOLATILE

OLDEST_REDIS: Final = (7, 0)  # functions, and stream ids of the form ms-*
OLDEST_VALKEY: Final = (7, 2)  # its first release
UNKNOWN: Final = "?"  # a setting that the server does not tell


def faults(
    info: Mapping[str, str],
    appendfsync: str | None,
    profile: str,
    replays: bool | None = None,
) -> list[str]:
    """Return why a server is not fit for *profile*, each as ``setting=value: rule``.

    Args: info: fields of INFO; empty for a stand-in that has none, fit for ``volatile`` only.
          appendfsync: that setting, or None if it may not be read.
          replays: whether a restart may replay the append-only file; None if that is not told.
    """
    if not info:
        wanted = f"must be told by the server for profile {profile}"
        return [] if profile == VOLATILE else [f"info={UNKNOWN}: {wanted}"]
    found = [_version_fault(info)]
    found.append(_expect(info, "maxmemory_policy", "noeviction", "or tallies vanish"))
    found.append(_expect(info, "role", "master", "a replica takes no writes"))
    if profile in (STANDARD, STRICT, HA):
        found.append(_expect(info, "aof_enabled", "1", f"for profile {profile}"))
    if profile in (STRICT, HA) and appendfsync != "always":
        told = appendfsync or UNKNOWN
        rule = f"must be always for profile {profile}; who may not read it needs hearsay init to"
        found.append(f"appendfsync={told}: {rule}")
    if profile != VOLATILE and replays is False:
        rule = "must have all rights, and be off: a restart forgets what this user may not replay"
        found.append(f"user default=without rights: {rule}")
    return [fault for fault in found if fault]


def _version_fault(info: Mapping[str, str]) -> str:
    valkey = "valkey_version" in info
    name, oldest = ("valkey", OLDEST_VALKEY) if valkey else ("redis", OLDEST_REDIS)
    told = info.get(f"{name}_version", UNKNOWN)
    parts = re.match(r"(\d+)\.(\d+)", told)
    if parts and (int(parts[1]), int(parts[2])) >= oldest:
        return ""
    return f"{name}_version={told}: must be at least {oldest[0]}.{oldest[1]}"


def _expect(info: Mapping[str, str], field: str, value: str, why: str) -> str:
    told = info.get(field, UNKNOWN)
    return "" if told == value else f"{field}={told}: must be {value}, {why}"
