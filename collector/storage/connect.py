"""Open the store that the settings name."""

from __future__ import annotations

from ..config import Config
from .connection import Connection
from .keys import Keys
from .redis import RedisStorage


def connect(config: Config) -> RedisStorage:
    """Return the storage of *config*.  Nothing is sent before its first use.

    Raises: ConfigError: the address or the prefix cannot be used.
    """
    return open_storage(config.redis_url, config.prefix, config.shards, config.profile)


def open_storage(redis_url: str, prefix: str, shards: int, profile: str) -> RedisStorage:
    """Return the storage at *redis_url*, whose keys begin with *prefix*.  Raises ConfigError."""
    return RedisStorage(Connection.open(redis_url), Keys(prefix, shards), profile)
