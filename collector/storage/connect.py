"""Open the store that the settings name."""

from __future__ import annotations

from ..core.config import Config
from .archive_queue import RedisArchiveQueue
from .cluster import ClusterConnection, is_cluster
from .connection import Connection
from .inspection import RedisInspection
from .keys import Keys
from .redis import RedisStorage


def connect(config: Config) -> RedisStorage:
    """Return the storage of *config*.  Nothing is sent before its first use.

    Raises: ConfigError: the address or the prefix cannot be used.
    """
    keys = Keys(config.prefix, config.shards)
    connection = open_connection(config.redis_url)
    return RedisStorage(connection, keys, config.profile, archived=bool(config.archive))


def connect_reader(config: Config) -> RedisStorage:
    """Return the same storage for reading tallies, perhaps as a user who may do nothing else.

    Raises: ConfigError.
    """
    return open_storage(config.query_url, config.prefix, config.shards, config.profile)


def open_storage(redis_url: str, prefix: str, shards: int, profile: str) -> RedisStorage:
    """Return the storage at *redis_url*, whose keys begin with *prefix*.  Raises ConfigError."""
    return RedisStorage(open_connection(redis_url), Keys(prefix, shards), profile)


def inspect(config: Config) -> RedisInspection:
    """Return what an operator may see and move in the store of *config*.  Raises ConfigError."""
    return RedisInspection(open_connection(config.redis_url), Keys(config.prefix, config.shards))


def archive_queue(config: Config) -> RedisArchiveQueue:
    """Return what waits to be archived in the store of *config*.  Raises ConfigError."""
    keys = Keys(config.prefix, config.shards)
    return RedisArchiveQueue(open_connection(config.redis_url), keys)


def open_connection(redis_url: str) -> Connection:
    """Return a connection to one server or to a cluster.  Raises ConfigError."""
    return (ClusterConnection if is_cluster(redis_url) else Connection).open(redis_url)
