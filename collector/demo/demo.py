"""The whole of Hearsay on one machine: store, collector, worker, simulated devices, answers.

Its table says for each answer what is true, what was estimated, and whether the interval covers it.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, TextIO

from client_sdk.core.epoch import day_of
from client_sdk.registry.contract import Registry
from client_sdk.upload.transport import MESSAGEPACK, RequestsTransport

from ..core.config import SHARDS, VOLATILE
from ..core.errors import ChildError
from ..operations.parent_death import die_with_parent
from ..storage.connect import open_storage
from ..storage.redis import RedisStorage
from .embedded import URL, EmbeddedStore, launch
from .fleet import (
    DATA,
    DEMO_REGISTRY,
    PER_SECOND,
    Crowd,
    drive,
    drive_gateways,
    population,
    run_forever,
    truth_of,
)
from .past import PAST_DAYS, Past, backfill, boards_of
from .truth_table import covered, in_words, print_table

_START_TIMEOUT = 20.0  # seconds until the collector must answer
_FOLD_TIMEOUT = 60.0  # seconds until everything acknowledged must be folded
_POLL = 0.1  # seconds between two looks
_ALONE: Final = 250  # devices with a client and an upload of their own; the others share gateways


def run(devices: int, port: int, once: bool, as_json: bool, show: bool = False) -> int:
    """Run the demo and return the exit status.

    Args: devices: people to simulate.  port: of the result page; another one if it is taken.
          once: exit after the answer.  as_json: print one JSON document on standard output only.
          show: open the result page in a browser.
    """
    out = sys.stderr if as_json else sys.stdout
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hearsay-demo-") as folder, Children() as children:
        redis_url = os.environ.get("REDIS_URL")
        with launch(redis_url, Path(folder) / "store") as store:
            site = _Site(store.url, free_port(port), Path(folder))
            _say(out, f"store: {store.kind}")
            environment = site.environment()
            try:
                children.start("serve", environment)
                worker = children.start("worker", environment)
                site.wait_until(lambda: site.backlog() is not None, _START_TIMEOUT, children)
                document = _measure(site, devices, children, out)
                document |= {"store": store.kind, "seconds": round(time.monotonic() - started, 2)}
                if as_json:
                    print(json.dumps(document))
                else:
                    print_table(document, out, in_words)
                    _say(out, f"{document['reports']:,} reports in {document['seconds']} s")
                if not once:
                    _say_settings(site, store, out)
                    _say_where(site, out, show)
                    children.end(worker)
                    past = _fill(site, devices, children, out)
                    for command in ("worker", "watch"):
                        children.start(command, environment)
                    _say(out, f"two weeks after {time.monotonic() - started:.0f} s")
                    _go_on(site, past, children, out)
            except KeyboardInterrupt:
                _say(out, "\nstopping")
            finally:
                children.stop()
                site.clean_up()
    return 0


def _measure(site: _Site, devices: int, children: Children, out: TextIO) -> dict[str, object]:
    """Drive the fleet, wait until all is folded, and hold the estimates against the truth."""
    registry = Registry.from_file(str(DEMO_REGISTRY))
    people = population(devices, random.Random())  # noqa: S311  # people, not noise
    progress = _Progress(out, "devices", devices)
    alone, others = people[:_ALONE], people[_ALONE:]
    traffic = drive(alone, registry, site.transport, progress)
    if others:
        traffic += drive_gateways(others, registry, site.gateway_transport)
        progress(devices)
    if lost := traffic.lost(registry):
        raise children.failure(f"{lost} reports of {devices} devices were not acknowledged")
    site.wait_until(lambda: site.backlog() == 0, _FOLD_TIMEOUT, children)
    truth = truth_of(people, registry)
    metrics = {metric.name: site.estimate(metric.name, truth[metric.name]) for metric in registry}
    return {
        "metrics": metrics,
        "covered": covered(metrics),
        "reports": traffic.reports,
        "devices": traffic.devices,
    }


def _say_settings(site: _Site, store: EmbeddedStore, out: TextIO) -> None:
    """Say by which settings other commands find the demo's store."""
    names = ["HEARSAY_REGISTRY", "HEARSAY_PREFIX", "HEARSAY_PROFILE"]
    if store.kind != URL:  # who gave an address has it, and it may hold a password
        names.append(URL)
    environment = site.environment()
    settings = " ".join(f"{name}={shlex.quote(environment[name])}" for name in names)
    _say(out, f"for other commands: export {settings}")


def _say_where(site: _Site, out: TextIO, show: bool) -> None:
    """Say where the pages are and what opens them, and open them if wanted."""
    _say(out, f"read token: {site.read_token}  (HEARSAY_READ_TOKEN of the queries on the pages)")
    _say(out, f"result page: {site.page}  (Ctrl-C ends everything)")
    if show:
        webbrowser.open(site.page)


def _fill(site: _Site, devices: int, children: Children, out: TextIO) -> Past:
    """Let past days report, while no worker runs, and fold them here; return what they were."""
    seed = random.SystemRandom().getrandbits(64)
    past = Past(site.url, site.gateway_key, str(DEMO_REGISTRY), devices, seed, time.time())
    backfill(
        past,
        site.storage(),
        children.require_alive,
        _Progress(out, "past days", PAST_DAYS),
    )
    return past


def _go_on(site: _Site, past: Past, children: Children, out: TextIO) -> None:
    """Let devices go on reporting while people look at the pages, until Ctrl-C or a death."""
    crowd = Crowd(past.usual, day_of(past.now), past.devices)
    pace = f"one every {1 / PER_SECOND:g} s goes on reporting"
    _say(out, f"devices: {pace}, up to the {crowd.usual:,} that are usual a day")
    chance = random.Random()  # noqa: S311  # people, not noise
    registry = Registry.from_file(str(DEMO_REGISTRY))
    run_forever(registry, site.transport, chance, children.require_alive, crowd)


class _Site:
    """The running collector as its users see it: over HTTP, with a key and a token."""

    def __init__(self, redis_url: str, port: int, folder: Path) -> None:
        import requests

        self._boards = folder / "boards.toml"
        self._boards.write_text(boards_of(time.time()), encoding="utf-8")

        self.url = f"http://127.0.0.1:{port}"
        self.write_key, self.gateway_key, self.read_token, self._start_token = (
            secrets.token_urlsafe(32) for _ in range(4)
        )
        self.transport = RequestsTransport(self.url, self.write_key)
        self.gateway_transport = RequestsTransport(
            self.url, self.gateway_key, content_type=MESSAGEPACK
        )
        self.page = f"{self.url}/login#token={self._start_token}"
        self._redis_url, self._port = redis_url, port
        self._prefix = f"hearsay-demo-{secrets.token_hex(4)}"
        self._session = requests.Session()
        self._session.trust_env = False  # a proxy of the office does not lead to this machine
        self._session.headers["Authorization"] = f"Bearer {self.read_token}"

    def environment(self) -> dict[str, str]:
        """The settings of both processes."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HEARSAY_")}
        return {
            **inherited,
            "HEARSAY_REGISTRY": str(DEMO_REGISTRY),
            "HEARSAY_BOARDS": str(self._boards),
            "HEARSAY_WATCHES": str(DATA / "watches.toml"),
            "REDIS_URL": self._redis_url,
            "HEARSAY_PREFIX": self._prefix,
            "HEARSAY_PROFILE": VOLATILE,
            "HEARSAY_DEVELOPMENT": "1",
            "HEARSAY_WRITE_KEY": self.write_key,
            "HEARSAY_GATEWAY_KEY": self.gateway_key,
            "HEARSAY_READ_TOKEN": self.read_token,
            "HEARSAY_HOST": "127.0.0.1",
            "HEARSAY_PORT": str(self._port),
            "HEARSAY_START_TOKEN": self._start_token,
        }

    def backlog(self) -> int | None:
        """Entries not folded yet, or None if the collector does not answer."""
        import requests

        try:
            answer = self._session.get(f"{self.url}/readyz", timeout=2)
        except requests.RequestException:
            return None
        return int(answer.json()["backlog"]) if answer.status_code == 200 else None

    def estimate(self, metric: str, truth: Mapping[str, float]) -> dict[str, object]:
        """The rows of *metric* with the true answers beside them."""
        answer = self._session.get(f"{self.url}/v1/metrics/{metric}/estimate", timeout=10)
        answer.raise_for_status()
        body = answer.json()
        shown = ("value", "ci_low", "ci_high", "std_error")
        rows = [
            {
                "item": (item := row["dimensions"]["item"]),
                "true": truth[item],
                **{name: row[name] for name in shown},
            }
            for row in body["rows"]
        ]
        (basis,) = body["meta"]["metrics"]
        return {"rows": rows, "n": basis["n"], "unit": basis["unit"]}

    def wait_until(self, done: Callable[[], bool], seconds: float, children: Children) -> None:
        """Return when *done()*; raise if a child died or *seconds* passed."""
        deadline = time.monotonic() + seconds
        while not done():
            children.require_alive()
            if time.monotonic() > deadline:
                raise children.failure(f"the collector was not ready within {seconds:.0f} s")
            time.sleep(_POLL)

    def storage(self) -> RedisStorage:
        """The store of both processes."""
        return open_storage(self._redis_url, self._prefix, SHARDS, VOLATILE)

    def clean_up(self) -> None:
        """Delete the demo's keys, which matters if the store is the user's own."""
        self.storage().destroy()


class _Progress:
    """Says how many have reported: on a terminal in place, elsewhere once at the end."""

    def __init__(self, out: TextIO, what: str, of: int) -> None:
        self._out, self._what, self._of = out, what, of
        self._ended = False

    def __call__(self, done: int) -> None:
        """Say that *done* have; after all have, say no more."""
        text = f"{self._what}: {done:,} of {self._of:,} have reported"
        is_end, self._ended = done == self._of and not self._ended, done == self._of
        if self._out.isatty() and (is_end or done < self._of):
            print(f"\r{text}", end="\n" if is_end else "", file=self._out, flush=True)
        elif is_end:
            _say(self._out, text)


def _say(out: TextIO, text: str) -> None:
    print(text, file=out, flush=True)


_GRACE: Final = 5.0  # seconds between a request to stop and the end
_TAIL: Final = 2_000  # characters of a dead child's last words


class Children:
    """A set of ``hearsay`` processes that do not outlive this one."""

    def __init__(self) -> None:
        """Begin with no process."""
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the set

    def __enter__(self) -> Children:
        """Return the set; leaving stops it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop whatever still runs."""
        self.stop()
        self._log.close()

    def start(self, command: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start ``hearsay`` *command* in a session of its own, so that Ctrl-C reaches only us."""
        process = subprocess.Popen(
            die_with_parent([sys.executable, "-m", "collector", command]),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._running.append((command, process))
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Stop one of the set in good order, and wait for it."""
        self._running = [pair for pair in self._running if pair[1] is not process]
        _end(process)

    def require_alive(self) -> None:
        """Raise ChildError if a process has ended."""
        for command, process in self._running:
            if process.poll() is not None:
                raise self.failure(f"hearsay {command} ended with status {process.returncode}")

    def failure(self, what: str) -> ChildError:
        """Return an error that says *what* happened and what the processes last wrote."""
        self._log.seek(0)
        return ChildError(f"{what}\n{self._log.read().decode(errors='replace')[-_TAIL:]}")

    def stop(self) -> None:
        """Ask every process to stop, the last started first, and end those that do not."""
        for _, process in reversed(self._running):
            process.terminate()
        for _, process in self._running:
            _end(process)
        self._running.clear()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to stop, and end it if it does not."""
    process.terminate()
    try:
        process.wait(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port(wanted: int) -> int:
    """Return *wanted* if nobody listens there, otherwise a free port of this machine."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ChildError("no port of this machine is free")
