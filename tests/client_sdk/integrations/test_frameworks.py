"""The middleware below real frameworks and servers: what each request is recorded as."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from client_sdk.integrations import asgi
from client_sdk.integrations.web import METRICS
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient

SECRET: Final = "user-4711"  # a part of a path: no record may hold it
REGISTRY: Final = Registry.from_text('schema = 1\napp = "shop"\n' + METRICS)
OF_A_REQUEST: Final = {"http.requests", "http.errors", "http.latency"}


@pytest.fixture
def device() -> Iterator[MemoryClient]:
    client = MemoryClient(REGISTRY)
    yield client
    assert client.refused == []
    assert SECRET not in repr(client.recorded)
    client.close()


def failures(device: MemoryClient) -> list[object]:
    """Return for each request that was recorded, with all three metrics, whether it failed."""
    names = [name for name, _ in device.recorded]
    assert len(names) == 3 * names.count("http.errors")
    assert set(names) <= OF_A_REQUEST
    return [value for name, value in device.recorded if name == "http.errors"]


# Flask


def flask_app(device: MemoryClient, **options: Any) -> Any:
    from flask import Flask, abort

    from client_sdk.integrations.flask import install

    app = Flask("shop")

    @app.before_request
    def early() -> str | None:
        from flask import request

        return "closed" if "closed" in request.args else None

    @app.get("/items/<name>")
    def item(name: str) -> str:
        if name == "broken":
            raise RuntimeError("broken")
        return abort(503) if name == "away" else f"item {name}"

    @app.get("/healthz")
    def healthz() -> str:
        return "well"

    install(app, device, **options)
    return app


def test_flask_records_answers_errors_and_early_answers(device: MemoryClient) -> None:
    browser = flask_app(device).test_client()

    statuses = [
        browser.get(f"/items/{name}").status_code for name in (SECRET, "broken", "away")
    ] + [browser.get(f"/{SECRET}").status_code, browser.get("/healthz?closed=1").status_code]

    assert statuses == [200, 500, 503, 404, 200]
    assert failures(device) == [False, True, True, False, False]


def test_flask_records_what_is_raised_through_it(device: MemoryClient) -> None:
    """Law: in debug mode nothing is answered, and the request counts once all the same."""
    app = flask_app(device)
    app.testing = True

    with pytest.raises(RuntimeError):
        app.test_client().get("/items/broken")

    assert failures(device) == [True]


def test_flask_leaves_out_routes_by_their_rule(device: MemoryClient) -> None:
    browser = flask_app(device, leave_out=["/healthz"]).test_client()

    browser.get("/healthz")
    browser.get("/items/1")

    assert failures(device) == [False]


# Django


@pytest.fixture(scope="module")
def django() -> Any:
    module = pytest.importorskip("django")
    from django.conf import settings
    from django.http import HttpResponse
    from django.urls import path

    def item(request: Any, name: str) -> Any:
        if name == "broken":
            raise RuntimeError("broken")
        return HttpResponse(f"item {name}")

    async def slow(request: Any) -> Any:
        await asyncio.sleep(0)
        return HttpResponse("slow")

    patterns = [
        path("items/<str:name>", item),
        path("slow", slow),
        path("healthz", lambda request: HttpResponse()),
    ]
    urls = type("urls", (), {"urlpatterns": patterns})
    settings.configure(
        ROOT_URLCONF=urls,
        SECRET_KEY="of a test",
        ALLOWED_HOSTS=["*"],
        LOGGING_CONFIG=None,
        MIDDLEWARE=["client_sdk.integrations.django.RequestMiddleware"],
        HEARSAY_LEAVE_OUT=["healthz"],
    )
    module.setup()
    return settings


def test_django_records_answers_and_errors(django: Any, device: MemoryClient) -> None:
    from django.test import Client

    django.HEARSAY_CLIENT = device
    browser = Client(raise_request_exception=False)

    statuses = [
        browser.get(f"/{path}").status_code
        for path in (f"items/{SECRET}", "items/broken", f"none/{SECRET}", "healthz", "slow")
    ]

    assert statuses == [200, 500, 404, 200, 200]
    assert failures(device) == [False, True, False, False]


def test_django_records_below_an_asynchronous_server(django: Any, device: MemoryClient) -> None:
    from django.test import AsyncClient

    django.HEARSAY_CLIENT = device
    browser = AsyncClient(raise_request_exception=False)

    async def visit() -> list[int]:
        return [(await browser.get(f"/{path}")).status_code for path in ("slow", "items/broken")]

    assert asyncio.run(visit()) == [200, 500]
    assert failures(device) == [False, True]


def test_django_takes_the_dotted_path_of_a_client(django: Any, device: MemoryClient) -> None:
    from client_sdk.integrations.django import RequestMiddleware

    django.HEARSAY_CLIENT = f"{__name__}.SHARED"
    middleware = RequestMiddleware(lambda request: type("Response", (), {"status_code": 200}))
    middleware._metrics.clock = iter([60.0, 60.0]).__next__
    middleware(object())

    assert failures(SHARED) == [False]
    assert ("http.latency", "10 ms") in SHARED.recorded
    assert failures(device) == []


SHARED: Final = MemoryClient(REGISTRY)


# ASGI


def ask(app: asgi.App, scope: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what *app* answers, as a server would receive it."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]  # a coroutine, as all are
    return sent


def answering(status: int, after: Callable[[], None] = lambda: None) -> asgi.App:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        after()
        await send({"type": "http.response.body", "body": b"end"})

    return app


def http(path: str = f"/items/{SECRET}") -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": path, "headers": []}


def test_asgi_passes_every_message_on_and_records_the_status(device: MemoryClient) -> None:
    bare = ask(answering(503), http())

    through = ask(asgi.RequestMiddleware(answering(503), device), http())

    assert through == bare
    assert failures(device) == [True]


def test_asgi_times_until_the_answer_begins(device: MemoryClient) -> None:
    """Law: a long download is no slow answer."""
    now = [0.0]
    app = asgi.RequestMiddleware(answering(200, lambda: now.append(now.pop() + 60)), device)
    app._metrics.clock = lambda: now[0]

    ask(app, http())

    assert ("http.latency", "10 ms") in device.recorded


def test_asgi_records_an_application_that_fails_and_raises_its_error(device: MemoryClient) -> None:
    """Law: before its answer began or after it, once."""

    def fail() -> None:
        raise RuntimeError("broken")

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        fail()

    for app in (broken, answering(200, fail)):
        with pytest.raises(RuntimeError, match="broken"):
            ask(asgi.RequestMiddleware(app, device), http())

    assert failures(device) == [True, True]


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
def test_asgi_sees_nothing_but_requests(device: MemoryClient, kind: str) -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    ask(asgi.RequestMiddleware(app, device), {"type": kind})

    assert seen == [kind]
    assert device.recorded == []


def test_starlette_is_recorded_with_its_routes(device: MemoryClient) -> None:
    pytest.importorskip("starlette")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def item(request: Any) -> Any:
        if request.path_params["name"] == "broken":
            raise RuntimeError("broken")
        return PlainTextResponse("item")

    async def healthz(request: Any) -> Any:
        return PlainTextResponse("well")

    routes = [Route("/items/{name}", item), Route("/healthz", healthz)]
    wrapped = Middleware(asgi.RequestMiddleware, client=device, leave_out=["/healthz"])
    app = Starlette(routes=routes, middleware=[wrapped])

    ask(app, http("/items/1"))
    ask(app, http("/healthz"))
    with pytest.raises(RuntimeError):
        ask(app, http("/items/broken"))
    ask(app, http(f"/{SECRET}"))

    assert failures(device) == [False, True, False]
