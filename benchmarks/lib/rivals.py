"""What a collector is measured beside: the obvious one, and a server that does nothing but HTTP.

Run: ``gunicorn benchmarks.lib.rivals:obvious``, whose store REDIS_URL names, and
``granian --interface rsgi benchmarks.lib.rivals:floor``.
"""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, request
from redis import Redis

obvious = Flask(__name__)
_redis = Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))


@obvious.post("/v1/reports")
def receive() -> tuple[dict[str, int], int]:
    """Count every report: one pipelined HINCRBY each, no dedupe, no checks."""
    columns = request.get_json()["columns"]
    with _redis.pipeline(transaction=False) as pipeline:
        for column in columns:
            pipeline.hincrby(f"{column['metric']}:{column['epoch']}", column["payloads"], 1)
        pipeline.execute()
    return {"accepted": len(columns)}, 202


class Floor:
    """Answers every request alike."""

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Read the body and accept it."""
        await protocol()
        protocol.response_bytes(202, [("content-type", "application/json")], b"{}")


floor = Floor()
