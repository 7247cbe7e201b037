"""Heads of requests: what can be read in one way only is served."""

from __future__ import annotations

import pytest

from collector.core.errors import MalformedHeadError
from collector.serving.application import require_plain
from tests.support.sites.rsgi import Request


def head(
    path: str = "/",
    method: str = "POST",
    version: str = "1.1",
    authority: str | None = None,
    **said: str,
) -> None:
    """Read the head of a request as the server gives it; lines part repeated headers."""
    headers = {name.replace("_", "-"): value for name, value in said.items()}
    scope = Request(path, method, headers).scope
    scope.http_version, scope.authority = version, authority
    if headers.get("host") == "":
        del scope.headers["host"]
    require_plain(scope)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"version": "1", "host": ""},
        {"version": "1", "host": "a.example"},
        {"host": "a.example:8000", "authority": "a.example:8000"},
        {"host": "[::1]:8000"},
        {"transfer_encoding": " Chunked"},
        {"content_type": "text/plain"},
        {"path": "*", "method": "OPTIONS"},
    ],
)
def test_a_plain_head_is_taken(changed: dict[str, str]) -> None:
    head(**changed)


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("Host: must be given once", {"host": ""}),
        ("Host: must be given once", {"host": "a.example\nb.example"}),
        ("Host: must be given once", {"version": "1", "host": "a.example\na.example"}),
        ("Host: must be a name", {"host": "a.example/x"}),
        ("Host: must be the one", {"host": "a.example", "authority": "b.example"}),
        ("Transfer-Encoding", {"transfer_encoding": "chunked\nchunked"}),
        ("Transfer-Encoding", {"transfer_encoding": "gzip, chunked"}),
        ("Content-Type", {"content_type": "text/plain\ntext/html"}),
        ("method", {"method": "Post"}),
        ("path", {"path": "http://a.example/"}),
        ("path", {"path": "*/"}),
    ],
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(part: str, changed: dict[str, str]) -> None:
    with pytest.raises(MalformedHeadError, match=f"^{part}"):
        head(**changed)
