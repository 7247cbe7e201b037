"""The obvious collector: Flask, JSON, one pipelined HINCRBY a report, no dedupe, no checks.

Run: ``gunicorn benchmarks.lib.obvious:app``; REDIS_URL names its store.
"""

from __future__ import annotations

import os

from flask import Flask, request
from redis import Redis

app = Flask(__name__)
_redis = Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))


@app.post("/v1/reports")
def receive() -> tuple[dict[str, int], int]:
    """Count every report."""
    columns = request.get_json()["columns"]
    with _redis.pipeline(transaction=False) as pipeline:
        for column in columns:
            pipeline.hincrby(f"{column['metric']}:{column['epoch']}", column["payloads"], 1)
        pipeline.execute()
    return {"accepted": len(columns)}, 202
