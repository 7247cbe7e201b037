"""Compiled registries: all that a device needs of a registry, worked out beforehand, as one JSON.

What is written costs nothing to read: which mechanism, its parameters, and the exact numbers that
it draws by.  docs/design/compiled-registry.md and the schema next to it describe it for devices
in any language.

A file is read in two steps.  At once: its form, its checksum, and each digest from what it stands
for.  When a metric is first used: its domain and its mechanism are made and checked as for any
registry, and what they spend is computed from the numbers that they draw by.  A metric that does
not spend exactly what the file says reports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from ..core import compact_json
from ..core.errors import RegistryError
from ..core.limits import MAX_COMPILED
from ..core.typing import TYPE_CHECKING, Any, Final, TypeVar
from ..mechanisms import names
from .keys import (
    FILE,
    FORMAT,
    METRIC,
    SPENT,
    Entry,
    Key,
    Rule,
    load_parameters,
    meant_parameters,
    rule_of,
)
from .metric import MEANING, Metric, digest_of, meaning_of, sha256

if TYPE_CHECKING:
    from datetime import date

Loaded = TypeVar("Loaded")

VERSION: Final = 1


def canonical(document: Mapping[str, object]) -> str:
    """Return *document* as sorted, compact JSON in ASCII."""
    return compact_json.dumps(document, sort_keys=True)


def checksum_of(document: Mapping[str, object]) -> str:
    """Return the SHA-256 of *document* without its checksum, in hexadecimal."""
    rest = {key: value for key, value in document.items() if key != "checksum"}
    return sha256(canonical(rest).encode("ascii")).hex()


def _of_whole(name: str) -> Any:
    return cached_property(lambda metric: getattr(metric.whole, name))


class CompiledMetric(Metric):
    """A metric whose costly parts are made when they are first used."""

    @cached_property
    def whole(self) -> Metric:
        """The metric, made as in any registry and checked against the file.

        Raises: RegistryError: names each field that differs.
        """
        from .assembly import assembled  # it loads all that a first report needs

        return assembled(self, self.__dict__["entry"])

    @cached_property
    def expires(self) -> date:
        """Its last day."""
        from datetime import date  # 1 ms that a start need not pay for

        return date.fromisoformat(self.__dict__["entry"]["expires"])

    domain = _of_whole("domain")
    mechanism = _of_whole("mechanism")
    policy = _of_whole("policy")
    otherwise = _of_whole("otherwise")
    need = _of_whole("need")


def load(text: str, kind: Callable[..., Loaded]) -> Loaded:
    """Return the registry that was compiled to *text*.

    Raises: RegistryError: with every problem found.
    """
    if len(text) > MAX_COMPILED:
        raise RegistryError([f"registry: must have at most {MAX_COMPILED} characters"])
    document = _parsed(text)
    # absent unless it is true, so that other files keep their bytes
    always = {key: part for key, part in document.items() if key != "separate"}
    separate = "separate" in document
    problems = list(_broken("", always, _FILE))
    if document.get("separate", True) is not True:
        problems.append("separate: must be true")
    if problems:
        raise RegistryError(problems)
    if document["checksum"] != checksum_of(document):
        raise RegistryError(["checksum: must match the file, which was edited: compile again"])
    segments = {name: tuple(values) for name, values in document["segments"].items()}
    own = document["app"] if separate else None
    metrics: list[Metric] = []
    for place, entry in enumerate(document["metrics"]):
        name = entry.get("name") if isinstance(entry, dict) else None
        lines = [f"metrics.{name or place}{line}" for line in _problems(entry, segments, own)]
        problems += lines
        if not lines:
            metrics.append(_light(entry, segments, document["app"], own))
    problems += _twice("name", (metric.name for metric in metrics))
    problems += _twice("digest", (metric.digest.hex() for metric in metrics))
    seats = document["seats"]
    if not problems and (seats, document["panel_week"]) != (None, None):
        from .seats import problems_of  # few registries have a panel

        problems += problems_of(document)
    if problems:
        raise RegistryError(problems)
    return kind(
        app=document["app"],
        segments=segments,
        metrics={metric.name: metric for metric in metrics},
        panel_week=document["panel_week"],
        automation=document["automation"],
        retire_key=document["retire_key"],
        seats=None if seats is None else {bytes.fromhex(d): tuple(seats[d]) for d in seats},
        separate=separate,
    )


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = compact_json.loads(text, pairs=compact_json.unique, number=_no_number)
    except (ValueError, RecursionError) as error:
        rule = "is no compiled registry: " + str(error).partition(":")[0]
        raise RegistryError([f"registry: {rule}"]) from None
    if not isinstance(document, dict) or document.get(FORMAT) != VERSION:
        rule = f"must be {VERSION}: compile the registry with this version of Hearsay"
        raise RegistryError([f"{FORMAT}: {rule}"])
    return document


def _no_number(text: str) -> None:
    raise ValueError("a number that is not whole")


def _rules(keys: tuple[Key, ...]) -> dict[str, Rule]:
    return {key.name: rule_of(key.compiled) for key in keys if key.compiled}


_FILE: Final = _rules(FILE)
_SPENT: Final = _rules(SPENT)
_METRIC: Final = _rules(METRIC)
_FIELDS: Final = tuple(key.name for key in METRIC if key.is_field)


def _broken(place: str, entry: Entry, rules: Mapping[str, Rule]) -> Iterator[str]:
    """Yield a line for each unknown or missing key, and each key that breaks its rule."""
    for key in sorted(entry.keys() - rules.keys()):
        printable = "".join(letter if letter.isprintable() else "?" for letter in key)
        yield f"{place}{printable}: is not a known key"
    for key, (check, rule) in rules.items():
        if key not in entry:
            yield f"{place}{key}: is missing"
        elif not check(entry[key]):
            yield f"{place}{key}: {rule}"


def _problems(
    entry: object, segments: Mapping[str, tuple[str, ...]], own: str | None
) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield ": must be an object"
        return
    broken = list(_broken(".", entry, _METRIC))
    if not broken:
        broken = list(_broken(".spent.", entry["spent"], _SPENT))
    yield from broken
    if broken:
        return
    if entry["mechanism"].get("name") not in names():
        yield ".mechanism: must be an object with the name of a mechanism of this version"
        return
    if unknown := sorted(set(entry["segments"]) - segments.keys()):
        yield f".segments: must be dimensions of the file, not {', '.join(unknown)}"
    if digest_of(_meaning_of_entry(entry, own)).hex() != entry["digest"]:
        yield ".digest: must match what the metric means"


def _twice(key: str, values: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            yield f"metrics.{value}: stands twice, by its {key}"
        seen.add(value)


def _meaning_of_entry(entry: Entry, app: str | None) -> str:
    """Return the meaning of a metric from its entry, as ``Metric.meaning`` does from its parts."""
    otherwise = entry["otherwise"]
    own = {
        "mechanism": meant_parameters(load_parameters(entry["mechanism"])),
        "otherwise": None if otherwise is None else otherwise["value"],
    }
    return meaning_of({**{key: entry[key] for key in MEANING}, **own}, app)


def _light(
    entry: Entry, segments: Mapping[str, tuple[str, ...]], app: str, own: str | None
) -> Metric:
    """Return a metric without its domain and its mechanism, which are made later."""
    metric = CompiledMetric.__new__(CompiledMetric)
    metric.__dict__.update({key: entry[key] for key in _FIELDS})
    metric.__dict__.update(
        entry=entry,
        mechanism_name=entry["mechanism"]["name"],
        segments={name: segments[name] for name in sorted(entry["segments"])},
        meaning=_meaning_of_entry(entry, own),
        app=app,
        separate=own is not None,
        digest=bytes.fromhex(entry["digest"]),
    )
    return metric
