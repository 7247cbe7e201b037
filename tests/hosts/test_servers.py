"""Below servers that fork their workers: nothing freezes, and what was recorded is written."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import sys
from pathlib import Path
from typing import Final

import pytest

from client_sdk.integrations.uwsgi import after_fork
from client_sdk.integrations.web import METRICS
from client_sdk.recording.background import GROUP_DELAY
from client_sdk.registry import Registry
from client_sdk.storage.schema import FILE_NAME
from client_sdk.testing import MemoryClient
from tests.support.patience import wait_for

from .hosted import BIN, WSGI, application, get, reports, run, runs, serving

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

VALUES: Final = 6
COUNTED: Final = 20
BURST: Final = 150
_STATS: Final = "s"  # a socket of the system's; a short name, as its path must be one
UWSGI: Final = (
    *(str(BIN / "pyuwsgi"), "--http-socket", "127.0.0.1:PORT", "--master", "--processes", "2"),
    *("--module", "program:application", "--die-on-term", "--need-app", "--stats", _STATS),
)
GUNICORN: Final = (
    *(sys.executable, "-m", "gunicorn", "program:application", "--bind", "127.0.0.1:PORT"),
    *("--workers", "2", "--log-level", "error"),
)
SERVERS: Final = {
    "uwsgi": UWSGI,
    "uwsgi with threads": (*UWSGI, "--enable-threads"),
    "uwsgi, each worker loads": (*UWSGI, "--enable-threads", "--lazy-apps"),
    "granian": (
        *(str(BIN / "granian"), "--interface", "wsgi", "--host", "127.0.0.1", "--port", "PORT"),
        *("--workers", "2", "program:application"),
    ),
    "gunicorn": (*GUNICORN, "--preload"),
    "gunicorn of gevent": (*GUNICORN, "-k", "gevent"),
    "gunicorn of gevent, forked": (*GUNICORN, "-k", "gevent", "--preload"),
}


needs_uwsgi: Final = pytest.mark.skipif(
    not (BIN / "pyuwsgi").exists(), reason="pyuwsgi has no wheel for this Python"
)


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(command, id=name, marks=[needs_uwsgi] if "uwsgi" in name else [])
        for name, command in SERVERS.items()
    ],
)
def test_a_server_answers_and_loses_nothing(tmp_path: Path, server: tuple[str, ...]) -> None:
    """Law: with a metric that reports silence, made before the fork, every value arrives."""
    application(tmp_path, WSGI)

    with serving(tmp_path, *server) as port:
        for i in range(VALUES):
            get(port, f"/m{i}")
        for _ in range(COUNTED):
            get(port, "/runs")
        if (
            "--enable-threads" in server
        ):  # whose workers end in a signal handler: see docs/guide/embed.md
            wait_until_written(tmp_path, VALUES, COUNTED)
        if server is UWSGI:
            wait_until_idle(tmp_path)
        if server is SERVERS["granian"]:
            wait_until_both_workers_answered(port)

    assert reports(tmp_path) == VALUES
    assert runs(tmp_path) == f"{COUNTED} runs"


def wait_until_both_workers_answered(port: int) -> None:
    """Return once both workers of granian have answered.

    One that is still starting, even if it has said "Started", can miss a SIGTERM, and granian waits
    for it without end.
    """
    workers: set[str] = set()

    def have_answered() -> bool:
        workers.add(get(port, "/process"))
        return len(workers) == 2

    wait_for(have_answered)


def wait_until_idle(folder: Path) -> None:
    """Return once no worker of uWSGI is in a request.

    One that is stopped in a request runs nothing more, and so writes nothing more.
    """

    def is_idle() -> bool:
        with socket.socket(socket.AF_UNIX) as stats, stats.makefile("rb") as answer:
            stats.connect(str(folder / _STATS))
            return all(worker["status"] == "idle" for worker in json.load(answer)["workers"])

    wait_for(is_idle)


def wait_until_written(folder: Path, values: int, counted: int) -> None:
    """Return once all that was recorded is on the disk."""
    wait_for(
        lambda: reports(folder) == values and runs(folder) == f"{counted} runs",
        despite=(sqlite3.OperationalError, StopIteration, AssertionError),
    )


@needs_uwsgi
def test_uwsgi_without_threads_writes_at_once_and_says_so(tmp_path: Path) -> None:
    """Law: where no thread runs none is begun, and the developer hears of it."""
    application(tmp_path, WSGI)

    with serving(tmp_path, *UWSGI) as port:
        threads = get(port, "/m0")
        written = reports(tmp_path)

    assert (written, "hearsay" in threads) == (1, False)
    assert "start uWSGI with --enable-threads" in (tmp_path / "log").read_text()


# Answers how many transactions others saw during so many values, and for how many they may.
_BURST: Final = f"""
import sqlite3, time
def application(environ, start_response):
    client.record("runs", 1)
    watcher = sqlite3.connect("data/{FILE_NAME}")
    versions, start = [], time.monotonic()
    for _ in range({BURST}):
        client.record("runs", 1)
        versions += watcher.execute("PRAGMA data_version").fetchone()
    most = 2 + (time.monotonic() - start) / {GROUP_DELAY}
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{{len(set(versions))}} {{most}}".encode()]
"""


@needs_uwsgi
def test_many_values_of_uwsgi_without_threads_share_a_transaction(tmp_path: Path) -> None:
    """Law: four a second at most, and the worker's end writes the last of them."""
    application(tmp_path, _BURST)

    with serving(tmp_path, *UWSGI) as port:
        seen, most = map(float, get(port, "/").split())
        wait_until_idle(tmp_path)

    assert seen <= most
    assert runs(tmp_path) == f"{BURST + 1} runs"


@needs_uwsgi
def test_the_master_of_uwsgi_has_no_thread_even_if_it_records(tmp_path: Path) -> None:
    """Law: a value that is recorded while the application is loaded freezes no worker."""
    application(tmp_path, 'client.record("m9", True)\nclient.record("runs", 5)\n' + WSGI)

    with serving(tmp_path, *UWSGI, "--enable-threads") as port:
        get(port, "/m0")
        threads = get(port, "/runs")
        wait_until_written(tmp_path, 2, 6)

    assert "hearsay" in threads, "a worker has one"
    assert reports(tmp_path) == 2
    assert runs(tmp_path) == "6 runs"


@needs_uwsgi
@pytest.mark.slow
@pytest.mark.parametrize("threads", [(), ("--enable-threads",)], ids=["without", "with"])
def test_no_start_of_uwsgi_hangs(tmp_path: Path, threads: tuple[str, ...]) -> None:
    """Law: of many starts, each answers, writes and ends."""
    for start in range(15):
        folder = tmp_path / str(start)
        folder.mkdir()
        application(folder, WSGI)
        with serving(folder, *UWSGI, *threads) as port:
            get(port, "/m0")
            get(port, "/runs")
            wait_until_a_report_is_written(folder)


def wait_until_a_report_is_written(folder: Path) -> None:
    """Return once the first report lies on the disk.

    uWSGI ends a worker from a signal handler, in the middle of whatever its threads are doing.
    """
    wait_for(
        lambda: (folder / "data" / FILE_NAME).exists() and reports(folder),
        despite=(sqlite3.OperationalError,),  # the database is there, and its tables not yet
    )


_ASGI: Final = """
import os
from client_sdk.integrations.asgi import RequestMiddleware
def answering(text):
    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text.encode()})
    return answer
counted = RequestMiddleware(answering("well"), client)
async def application(scope, receive, send):
    if scope.get("path") == "/process":
        return await answering(str(os.getpid()))(scope, receive, send)
    await counted(scope, receive, send)
"""
_FLASK: Final = """
from flask import Flask
from client_sdk.integrations.flask import install
application = Flask("shop")
install(application, client)
application.add_url_rule("/items/<item>", view_func=lambda item: "well", endpoint="item")
"""
_DJANGO: Final = """
from django.conf import settings
settings.configure(
    ALLOWED_HOSTS=["*"], ROOT_URLCONF="program", HEARSAY_CLIENT="program.client",
    MIDDLEWARE=["client_sdk.integrations.django.RequestMiddleware"], SECRET_KEY="of a test",
)
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
urlpatterns = [path("items/<str:item>", lambda request, item: HttpResponse("well"))]
application = get_wsgi_application()
"""
_GRANIAN_ASGI: Final = (
    *(str(BIN / "granian"), "--interface", "asginl", "--host", "127.0.0.1", "--port", "PORT"),
    *("--workers", "2", "program:application"),
)


@pytest.mark.parametrize(
    ("program", "server"),
    [
        pytest.param(_ASGI, _GRANIAN_ASGI, id="asgi"),
        pytest.param(_FLASK, GUNICORN, id="flask"),
        pytest.param(_DJANGO, GUNICORN, id="django"),
    ],
)
def test_requests_below_a_server_add_up_over_its_workers(
    tmp_path: Path, program: str, server: tuple[str, ...]
) -> None:
    """Law: two processes of one installation count every request once, together."""
    application(tmp_path, program)
    (tmp_path / "metrics.toml").write_text(f'schema = 1\napp = "demo"\n{METRICS}')

    with serving(tmp_path, *server) as port:
        for _ in range(COUNTED):
            assert get(port, "/items/user-4711") == "well"
        if server is _GRANIAN_ASGI:
            wait_until_both_workers_answered(port)

    shown = run(
        tmp_path,
        *(sys.executable, "-m", "client_sdk", "show", "--data-dir", "data"),
        *("--registry", "metrics.toml"),
    )
    assert f"true so far: {COUNTED} requests" in shown
    assert "4711" not in shown


_SILENT: Final = """
import threading
import uwsgi
{before}
from client_sdk.integrations.uwsgi import after_fork
assert after_fork(client)
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str([thread.name for thread in threading.enumerate()]).encode()]
"""
_EARLIER: Final = """
def earlier():
    open("earlier", "w").close()
{place}
"""


@needs_uwsgi
@pytest.mark.parametrize(
    "place",
    ["uwsgi.post_fork_hook = earlier", "import uwsgidecorators; uwsgidecorators.postfork(earlier)"],
    ids=["hook", "decorators"],
)
@pytest.mark.parametrize("load", [(), ("--lazy-apps",)], ids=["forked", "lazy"])
def test_a_worker_of_uwsgi_is_at_work_before_it_records(
    tmp_path: Path, place: str, load: tuple[str, ...]
) -> None:
    """Law: after_fork starts the thread of each worker, and keeps the hooks of others."""
    application(tmp_path, _SILENT.format(before=_EARLIER.format(place=place)))

    with serving(tmp_path, *UWSGI, "--processes=1", "--enable-threads", *load) as port:
        threads = get(port, "/")
        wait_until_written(tmp_path, 0, 0)  # a worker that is stopped while it writes may hang

    assert "hearsay" in threads
    assert runs(tmp_path) == "0 runs"
    assert load or (tmp_path / "earlier").exists()


def test_outside_of_uwsgi_there_is_nothing_to_hook() -> None:
    assert not after_fork(MemoryClient(Registry.from_text(f'schema = 1\napp = "demo"\n{METRICS}')))
