"""The relay as a process of its own, started by ``hearsay relay``.

Run as ``python -m collector.relay SETTINGS``, with the settings as JSON: a process that loads these
modules and the HTTP server, and neither the store nor a registry, whatever the command loads.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from ipaddress import ip_network
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from granian.errors import ConfigurationError

from client_sdk.core.limits import RELAY_WAIT, RELAY_WAIT_CHILD

from ..core.errors import CollectorError, ConfigError
from ..core.logs import configure
from ..serving.server import require_free, serve_application, settings_of
from .batches import CARRY_S, Batches
from .carrier import Carrier
from .front import Front
from .networks import Network, Rates

ROLE: Final = "relay"
_LONGEST_S: Final = 600.0  # seconds that a batch may gather: proxies and phones drop such a request
# seconds for which devices wait while a batch gathers, less what carrying and connecting take
PATIENT_S: Final = RELAY_WAIT_CHILD - CARRY_S - 5.0
_MOST_PATIENT_S: Final = RELAY_WAIT - CARRY_S - 5.0
_CONNECTIONS: Final = 10_000  # each holds a message that waits
_OWN_FILES: Final = 64  # open files beside them: the way to the gateway, above all
_UNITS: Final = {"s": 1.0, "m": 60.0}
_log = logging.getLogger("hearsay.relay")


@dataclass(frozen=True)
class Settings:
    """The settings of a relay."""

    to: str
    batch: int
    within: float  # seconds
    host: str
    port: int
    per_network: int  # messages a minute
    behind: tuple[str, ...]  # proxies
    certificate: str  # file; "": plain HTTP
    key: str  # file
    origins: tuple[str, ...] = ()  # whose pages may send from a browser

    def start(self) -> None:
        """Become the relay.  Raises ConfigError: before this process is replaced."""
        _front_of(self)
        command = [sys.executable, "-m", __package__, json.dumps(asdict(self))]
        os.execv(sys.executable, command)  # noqa: S606  # no shell is meant

    def networks(self) -> tuple[Network, ...]:
        """Return the networks of the proxies.  Raises ConfigError."""
        try:
            return tuple(ip_network(text) for text in self.behind)
        except ValueError:
            rule = "must be the address or network of a proxy, such as 10.0.3.7"
            raise ConfigError("--behind", ",".join(self.behind), rule) from None


def seconds(option: str, text: str) -> float:
    """Return the seconds of *text*, such as ``15s`` or ``10m``.  Raises ConfigError."""
    number, unit = text[:-1], text[-1:]
    value = int(number) * _UNITS[unit] if number.isdecimal() and unit in _UNITS else 0.0
    if not 1 <= value <= _LONGEST_S:
        raise ConfigError(option, text, "must be from 1s to 10m")
    return value


def _front_of(settings: Settings) -> Front:
    """Return the application.  Raises ConfigError."""
    if bool(settings.certificate) is not bool(settings.key):
        raise ConfigError("--certificate", settings.certificate, "needs --key, and --key needs it")
    carrier, networks = Carrier(settings.to), settings.networks()
    shuffle = SystemRandom().shuffle
    batches = Batches(carrier.carry, settings.batch, settings.within, shuffle)
    rates = Rates(settings.per_network, time.monotonic)
    return Front(batches, rates, networks, settings.origins)


def _most_connections() -> int:
    """Return how many connections there may be, after raising the limit of open files.

    With a file open for each of them, none would be left for the way to the gateway.
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _OWN_FILES
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return max(limit - _OWN_FILES, 1)


def run(settings: Settings) -> None:
    """Relay until stopped.  Raises ConfigError."""
    front = _front_of(settings)
    require_free("--port", settings.host, settings.port)
    _log.info(
        "relay started: batches of %d networks, or each %g s", settings.batch, settings.within
    )
    for devices, patience in (("short-lived programs", PATIENT_S), ("any kind", _MOST_PATIENT_S)):
        if settings.within > patience:
            text = "devices of %s wait %g s for a batch: others come again, until one leaves sooner"
            _log.warning(text, devices, patience)
    if Carrier(settings.to).is_plain:
        _log.warning(
            "plain HTTP to the gateway: an observer of that way sees which messages leave; use TLS"
        )
    given = settings_of(ROLE, settings.host, settings.port, _most_connections())
    if settings.certificate:
        given |= {"ssl_cert": Path(settings.certificate), "ssl_key": Path(settings.key)}
    try:
        asyncio.run(serve_application(front, given, front.stop))
    except ConfigurationError as error:
        raise ConfigError("--certificate", settings.certificate, str(error)) from None
    _log.info("relay stopped")


def main(arguments: Sequence[str]) -> None:
    """Run with the settings that ``Settings.start`` has written."""
    [text] = arguments
    fields: dict[str, Any] = json.loads(text)
    configure(ROLE)
    try:
        run(Settings(**{**fields, **{name: tuple(fields[name]) for name in ("behind", "origins")}}))
    except CollectorError as error:
        raise SystemExit(f"Error: {error}") from None
    logging.shutdown()
    os._exit(0)  # threads of the server that call into an interpreter which ends would abort it
