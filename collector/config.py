"""The collector's settings, read once from the environment and checked as a whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from .errors import ConfigError

DEVICE: Final = "device"  # key class: bodies of at most 64 KiB
GATEWAY: Final = "gateway"  # key class: bodies of at most 8 MiB
STANDARD: Final = "standard"  # append-only file, synced every second: up to 2 s lost at power loss
STRICT: Final = "strict"  # append-only file, synced at every write: nothing acknowledged is lost
VOLATILE: Final = "volatile"  # nothing is kept: tests and demos
PROFILES: Final = (STANDARD, STRICT, VOLATILE)
MIN_SECRET: Final = 16  # characters of a key or token; generated ones have 43
MAX_SHARDS: Final = 1024
KNOWN: Final = frozenset(
    f"HEARSAY_{name}"
    for name in (
        *("REGISTRY", "PREFIX", "SHARDS", "PROFILE", "HOST", "PORT", "OPEN_DASHBOARD", "HEARTBEAT"),
        *("WRITE_KEY", "WRITE_KEY_FILE", "GATEWAY_KEY", "GATEWAY_KEY_FILE"),
        *("READ_TOKEN", "READ_TOKEN_FILE"),
    )
)
LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
HIDDEN: Final = "***"  # shown instead of a key or token
_MAX_DIGITS: Final = 9  # of an integer setting


@dataclass(frozen=True)
class Config:
    """Settings of web process and worker.  Keys and tokens are held as SHA-256 digests only."""

    registry_paths: tuple[str, ...]
    redis_url: str = field(repr=False)  # may hold a password
    prefix: str
    shards: int
    profile: str
    write_keys: Mapping[bytes, str]  # digest to key class
    read_tokens: frozenset[bytes]  # digests
    host: str
    port: int
    open_dashboard: bool  # pages without a token; on loopback only

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Config:
        """Read ``HEARSAY_*`` and ``REDIS_URL``.

        Raises: ConfigError: names the variable, never a secret.
        """
        _require_known(env)
        host = _address(env.get("HEARSAY_HOST", "127.0.0.1"))
        open_dashboard = _one_of(env, "HEARSAY_OPEN_DASHBOARD", "0", ("0", "1")) == "1"
        if open_dashboard and not is_loopback(host):
            raise ConfigError("HEARSAY_OPEN_DASHBOARD", 1, "needs a loopback HEARSAY_HOST")
        paths = tuple(path for path in env.get("HEARSAY_REGISTRY", "").split(os.pathsep) if path)
        if not paths:
            raise ConfigError("HEARSAY_REGISTRY", "", "must name at least one metrics.toml")
        write_keys, read_tokens = _credentials(env)
        return cls(
            registry_paths=paths,
            redis_url=env.get("REDIS_URL", "redis://127.0.0.1:6379/0"),
            prefix=env.get("HEARSAY_PREFIX", "hearsay"),
            shards=_integer(env, "HEARSAY_SHARDS", 4, 1, MAX_SHARDS),
            profile=_one_of(env, "HEARSAY_PROFILE", STANDARD, PROFILES),
            write_keys=write_keys,
            read_tokens=read_tokens,
            host=host,
            port=_integer(env, "HEARSAY_PORT", 8000, 1, 65_535),
            open_dashboard=open_dashboard,
        )


def digest_of(secret: str) -> bytes:
    """Return the SHA-256 by which a key or token is known here."""
    return hashlib.sha256(secret.encode()).digest()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach *host*."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _require_known(env: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable that looks like ours and is not: a typing error."""
    ours = {name for name in env if name.startswith("HEARSAY_")}
    unknown = sorted(name for name in ours - KNOWN if not name.startswith("HEARSAY_TESTS_"))
    if unknown:
        raise ConfigError(
            unknown[0], HIDDEN, f"is no setting; known are {', '.join(sorted(KNOWN))}"
        )


def _address(host: str) -> str:
    try:
        return "127.0.0.1" if host == "localhost" else str(ip_address(host))
    except ValueError:
        raise ConfigError("HEARSAY_HOST", host, "must be an IP address or localhost") from None


def _credentials(env: Mapping[str, str]) -> tuple[dict[bytes, str], frozenset[bytes]]:
    """Return the write keys with their class, and the read tokens, all as digests."""
    names = ("HEARSAY_WRITE_KEY", "HEARSAY_GATEWAY_KEY", "HEARSAY_READ_TOKEN")
    device, gateway, token = secrets = [_secret(env, name) for name in names]
    given = [secret for secret in secrets if secret]
    if len(set(given)) != len(given):
        raise ConfigError(", ".join(names), HIDDEN, "must all differ: each allows something else")
    keys = {digest: kind for digest, kind in ((device, DEVICE), (gateway, GATEWAY)) if digest}
    return keys, frozenset({token} if token else ())


def _one_of(env: Mapping[str, str], name: str, default: str, allowed: tuple[str, ...]) -> str:
    text = env.get(name, default)
    if text not in allowed:
        raise ConfigError(name, text, f"must be one of {', '.join(allowed)}")
    return text


def _secret(env: Mapping[str, str], name: str) -> bytes | None:
    """Return the digest of the secret in variable *name*, or in the file that *name*_FILE names."""
    path = env.get(f"{name}_FILE")
    secret = env.get(name, "")
    if path:
        try:
            with open(path, encoding="utf-8") as file:
                secret = file.read().strip()
        except (OSError, UnicodeDecodeError):
            # from None: a decoding error holds the bytes of the secret
            raise ConfigError(f"{name}_FILE", path, "cannot be read as UTF-8 text") from None
        if not secret:
            raise ConfigError(f"{name}_FILE", path, "is empty")
    if not secret:
        return None
    if not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise ConfigError(name, HIDDEN, "must be printable ASCII without spaces, as a header holds")
    if len(secret) < MIN_SECRET:
        raise ConfigError(name, HIDDEN, f"must have at least {MIN_SECRET} characters")
    return digest_of(secret)


def _integer(env: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = env.get(name, str(default))
    short = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    if not (short and least <= int(text) <= most):
        raise ConfigError(name, text, f"must be an integer from {least} to {most}")
    return int(text)
