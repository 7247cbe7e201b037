"""The users of a store, each on a connection with its own rights."""

from __future__ import annotations

import re
from typing import Final

from collector.core.cells import Cell
from collector.core.config import STANDARD
from collector.storage.access import COPY, USERS, acl_lines, name_of
from collector.storage.connection import Connection
from collector.storage.redis import RedisStorage
from tests.support.store.servers import own_keys

METRIC, DAY = b"\x01" * 6, 30_000
CELL = Cell(METRIC, 3, "")
PASSWORD: Final = "password-for-tests"


class Users:
    """A deployment of its own on the shared server, and a connection for each user."""

    def __init__(self, url: str) -> None:
        self.url, self.keys = url, own_keys()
        self.admin = Connection.open(url)
        self.open: list[Connection] = [self.admin]
        for line in acl_lines(self.keys.prefix, dict.fromkeys((*USERS, COPY), PASSWORD)):
            words = _words(line)[1:]
            if words[0] != "default":  # the server is shared with other tests
                self.admin.call("ACL", "SETUSER", *words)

    def connection(self, user: str) -> Connection:
        login = f"unix://{name_of(user, self.keys.prefix)}:{PASSWORD}@"
        self.open.append(Connection.open(self.url.replace("unix://", login, 1)))
        return self.open[-1]

    def storage(self, user: str) -> RedisStorage:
        return RedisStorage(self.connection(user), self.keys, STANDARD)

    def names(self) -> dict[str, str]:
        keys = self.keys
        return {
            "stream": keys.stream(0),
            "seen": keys.seen(0, DAY),
            "shards": keys.shard_count,
            "tally": keys.tally(0, CELL),
            "cells": keys.cells(0, METRIC, 3),
            "counters": keys.counters(0),
            "quarantine": keys.quarantine(0),
            "archive": keys.archive(0),
            "credentials": f"{keys.prefix}:credentials",
            "usage": f"{keys.prefix}:usage:{DAY}",
            "watch": f"{keys.prefix}:watch",
            "counters2": "other:{0}:counters",
        }

    def close(self) -> None:
        RedisStorage(self.admin, self.keys, STANDARD).destroy()
        for user in (*USERS, COPY):
            self.admin.call("ACL", "DELUSER", name_of(user, self.keys.prefix))
        for connection in self.open:
            connection.close()


def _words(line: str) -> list[str]:
    return re.findall(r"\([^)]*\)|\S+", line)
