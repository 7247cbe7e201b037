"""Audit a device that is another program: the build that people run, in any language.

It is a program that reads lines and answers each with a line, both JSON in UTF-8, until its input
ends::

    {"metric": "theme", "value": "dark"}  ->  {"payload": "02"}

The payload is one fresh report of that value, in hexadecimal, as a new device would make it: from
the system's entropy, with a secret of its own, and without a ledger.  Whatever else it answers ends
the audit.  The registry is the one that the program was built with.

This finds mistakes, not malice: a program can know that it is being looked at.
"""

from __future__ import annotations

import json
import math
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from threading import Timer
from types import TracebackType
from typing import IO, Any, Final, cast

from client_sdk.core.errors import InvalidParameterError, InvalidValueError
from client_sdk.core.randomness import system_randomness
from client_sdk.registry.metric import Metric

from ..core.errors import ChildError
from .audit import PAIRS, Audit, audit

BATCH: Final = 32_768  # bytes on their way: a pipe holds them, so neither side waits for ever
PATIENCE_S: Final = 60.0  # seconds for the answers to a batch
MAX_ANSWER: Final = 1 << 20  # characters of a line


class Device:
    """A running program that answers lines; used as a context manager."""

    def __init__(self, command: str, patience: float = PATIENCE_S) -> None:
        """Start *command*, split as a shell would.  Raises ChildError: it cannot be started."""
        self._command, self._patience = command, patience
        try:
            words = shlex.split(command)
            self._process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
            )
        except (OSError, ValueError, IndexError) as error:
            raise ChildError(f"device={command}: cannot be started: {error}") from error

    def reports(self, metric: Metric, value: object, count: int) -> Iterator[bytes]:
        """Yield *count* payloads of *value*.

        Raises: ChildError: the program ended, was silent too long, or answered something else.
        """
        line = json.dumps({"metric": metric.name, "value": value}) + "\n"
        most = max(1, BATCH // len(line))
        for start in range(0, count, most):
            yield from self._batch(metric, line, min(most, count - start))

    def _batch(self, metric: Metric, line: str, count: int) -> Iterator[bytes]:
        stdin, stdout = (cast("IO[str]", p) for p in (self._process.stdin, self._process.stdout))
        watch = Timer(self._patience, self._process.kill)
        watch.start()
        try:
            stdin.write(line * count)
            stdin.flush()
            answers = [stdout.readline(MAX_ANSWER) for _ in range(count)]
        except (OSError, UnicodeDecodeError) as error:
            raise self._silent(metric) from error
        finally:
            watch.cancel()
        for answer in answers:
            if not answer:
                raise self._silent(metric)
            yield _payload(metric, answer)

    def _silent(self, metric: Metric) -> ChildError:
        rule = f"must answer each line within {self._patience:.0f} s, until its input ends"
        return ChildError(f"device={self._command}: {rule}; it did not for {metric.name}")

    def __enter__(self) -> Device:
        """Return the program."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the program, which ends by itself with its input."""
        if kind is not None:
            self._process.kill()
        try:
            self._process.communicate(timeout=self._patience)
        except (subprocess.TimeoutExpired, OSError):
            self._process.kill()
            self._process.wait()


def _payload(metric: Metric, answer: str) -> bytes:
    """Return the payload that *answer* holds.  Raises ChildError: it holds none of this metric."""
    size = metric.mechanism.payload_size
    try:
        payload = bytes.fromhex(json.loads(answer)["payload"])
    except (ValueError, TypeError, LookupError, RecursionError):
        payload = b""
    if len(payload) != size:
        rule = f'must answer {{"payload": "{2 * size} hexadecimal digits"}}'
        raise ChildError(f"{metric.name}: the device {rule}, not {answer.strip()[:200]!r}")
    return payload


def audit_device(
    device: Device, metrics: Iterable[Metric], draws: int, pairs: int = PAIRS
) -> list[Audit]:
    """Attack every one of *metrics* by the pairs of its mechanism, with reports of *device*.

    Raises: ChildError, InvalidParameterError: as Device and :func:`audit` say.
    """
    return [_audited(device, metric, draws, pairs) for metric in metrics]


def _audited(device: Device, metric: Metric, draws: int, pairs: int) -> Audit:
    def reports(encoded: Any, count: int) -> Iterator[bytes]:
        return device.reports(metric, value_of(metric, encoded), count)

    return audit(
        metric.mechanism, system_randomness(), draws, pairs, reports=reports, name=metric.name
    )


def value_of(metric: Metric, encoded: Any) -> object:
    """Return a value, as JSON, that *metric* makes *encoded* of.

    Raises: InvalidParameterError: there is none, as of texts that are no UTF-8.
    """
    for value in _candidates(metric.domain, encoded):
        try:
            if metric.encode(value) == encoded:
                return value
        except InvalidValueError:
            continue
    raise InvalidParameterError("metric", metric.name, "has no value to be audited by")


def _candidates(domain: Any, encoded: Any) -> Iterator[object]:
    """Yield what values of any type of domain may look like; the domain says which is right."""
    given = domain.as_given(encoded)
    yield given
    if isinstance(given, Mapping):
        yield {key: _number(text) for key, text in given.items()}
    elif isinstance(encoded, Fraction):
        number = _number(given)
        yield number
        yield math.nextafter(number, math.inf)  # beyond an end, which counts as the end
        yield math.nextafter(number, -math.inf)
    elif isinstance(encoded, int):
        labels = domain.value_labels()
        yield bool(encoded)
        yield [label for place, label in enumerate(reversed(labels)) if encoded >> place & 1]
        if domain.parts:
            (first, _), (second, seconds) = domain.parts.items()
            high, low = divmod(encoded, len(seconds))
            yield {first: domain.parts[first][high], second: seconds[low]}
        if hasattr(domain, "corners"):
            west, south, east, north = domain.corners(encoded)
            yield [float(west + east) / 2, float(south + north) / 2]


def _number(text: str) -> float:
    return float(Fraction(text))
