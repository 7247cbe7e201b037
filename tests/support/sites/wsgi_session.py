"""A session of requests whose collector is an application in this process, without a network."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import requests
from flask import Flask
from requests.adapters import BaseAdapter


class _Adapter(BaseAdapter):
    """Hands each request to an application, and keeps it."""

    def __init__(self, app: Flask) -> None:
        super().__init__()
        self._client = app.test_client()
        self.sent: list[requests.PreparedRequest] = []

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        self.sent.append(request)
        address = urlsplit(str(request.url))
        found = self._client.open(
            address.path,
            method=str(request.method),
            query_string=address.query,
            headers=dict(request.headers),
            data=request.body,
        )
        response = requests.Response()
        response.status_code = found.status_code
        response.headers.update(dict(found.headers))
        response.raw = BytesIO(found.data)
        response.url = str(request.url)
        return response

    def close(self) -> None:
        """Nothing is open."""


def session_of(app: Flask) -> tuple[requests.Session, list[requests.PreparedRequest]]:
    """Return a session that asks *app*, and the list to which it adds what it has sent."""
    session, adapter = requests.Session(), _Adapter(app)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session, adapter.sent


def failing_session(answer: Mapping[str, Any] | Exception) -> requests.Session:
    """Return a session that always gets the same: an exception, or status, headers and body."""

    class Failing(BaseAdapter):
        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            if isinstance(answer, Exception):
                raise answer
            response = requests.Response()
            response.status_code = answer["status"]
            response.headers.update(answer.get("headers", {}))
            response.raw = BytesIO(answer.get("body", b""))
            response.url, response.request = str(request.url), request
            return response

        def close(self) -> None:
            pass

    session = requests.Session()
    session.mount("http://", Failing())
    session.mount("https://", Failing())
    return session
