"""A device in TypeScript as a process that answers lines, and what Python answers to the same."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from client_sdk.core.errors import InvalidValueError
from client_sdk.registry import Registry
from client_sdk.registry.longitudinal import encode_item, permanent_randomness
from client_sdk.registry.metric import Metric
from collector.planning.compilation import compiled
from tests.client_sdk_ts.channels import write_value
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.node import PACKAGE, Node
from tests.support.patience import PATIENCE
from tests.support.store.processes import until_ended

PLAIN: Final = 1 << 53  # whole numbers below are numbers of JavaScript, others bigints
SECRET: Final = bytes(range(32))
# What a refusal calls types of Python, and what it calls them in TypeScript.
WORDS: Final = (
    ("takes True or False", "takes true or false"),
    ("takes a list or set of", "takes a list or Set of"),
    ("takes a mapping of", "takes an object or Map of"),
)
Line = dict[str, Any]
Answer = dict[str, Any]


class Device:
    """A process of ``tests/programs/device.ts``; a batch of lines in, their answers out."""

    def __init__(self, node: Node, registry: Path) -> None:
        self._process = subprocess.Popen(
            [node.program, "build/tests/programs/device.js", str(registry)],
            cwd=PACKAGE,
            env=node.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, lines: Sequence[Line]) -> list[Answer]:
        """Return the answer to each of *lines*."""
        pipes = self._process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        answers = []
        for line in lines:  # a pipe holds fewer lines than a batch can have
            pipes.stdin.write(json.dumps(line) + "\n")
            pipes.stdin.flush()
            answers.append(json.loads(pipes.stdout.readline()))
        return answers

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with until_ended(self._process, signal.SIGKILL):
            self._process.communicate(timeout=PATIENCE)


@contextmanager
def device_of(node: Node, registry: Registry, folder: Path) -> Iterator[Device]:
    """Lend a device of *registry*, which is compiled into *folder*."""
    path = folder / f"{registry.app}.json"
    path.write_text(compiled(registry), "utf-8")
    with Device(node, path) as device:
        yield device


def write(value: Any) -> Any:
    """Return *value* as JSON; what JSON has not, as an object with one key."""
    match value:
        case float() if not isfinite(value):
            return {"$number": str(value).replace("inf", "Infinity").replace("nan", "NaN")}
        case int() if abs(value) >= PLAIN:
            return {"$bigint": str(value)}
        case list() | tuple():
            return [write(part) for part in value]
        case set() | frozenset():
            return {"$set": [write(part) for part in value]}
        case dict() if all(isinstance(key, str) for key in value):
            return {key: write(part) for key, part in value.items()}
        case dict():
            return as_map(value)
    return {"$undefined": True} if value is ... else value


def as_map(value: Mapping[Any, Any]) -> Any:
    """Return a mapping as JSON that becomes a Map."""
    return {"$map": [[write(key), write(part)] for key, part in value.items()]}


def encoded(metric: Metric, value: Any) -> Answer:
    """Return what Python makes of *value*, as the device writes it."""
    try:
        return {"encoded": write_value(metric.encode(value))}
    except InvalidValueError as error:
        return {"error": in_typescript(str(error))}


def payload(metric: Metric, value: Any, seed: bytes) -> Answer:
    """Return the payload that Python draws from SHAKE-256 of *seed*, by SECRET."""
    randomness = SeededRandomness(seed)
    item = metric.encode(value)
    if metric.policy is None:
        return {"payload": metric.mechanism.randomize(item, randomness).hex()}
    assert isinstance(item, int)
    permanent = permanent_randomness(SECRET, metric.digest, encode_item(item))
    return {"payload": metric.policy.randomize(item, permanent, randomness).hex()}


def in_typescript(refusal: str) -> str:
    """Return a refusal of Python with the names that types have in TypeScript."""
    for python, typescript in WORDS:
        refusal = refusal.replace(python, typescript)
    return refusal
