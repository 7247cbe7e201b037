"""Templates that are compiled once for all applications of a run: each would compile its own."""

from __future__ import annotations

from typing import Final

from flask import Flask
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket


class _Compiled(BytecodeCache):
    """Keeps what was compiled in memory."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        kept = self._kept.get((bucket.key, bucket.checksum))
        if kept is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key, bucket.checksum] = bucket.bytecode_to_string()


_COMPILED: Final = _Compiled()


def compiled_once(app: Flask) -> Flask:
    """Return *app*, which takes the templates that another one has compiled."""
    app.jinja_env.bytecode_cache = _COMPILED
    return app
