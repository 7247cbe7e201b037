"""Compiled registries: all that a device needs of a registry, worked out beforehand, as one JSON.

What is written costs nothing to read: which mechanism, its parameters, and the exact numbers that
it draws by.  docs/design/compiled-registry.md and ``compiled.schema.json`` describe it for devices
in any language.

A file is read in two steps.  At once: its form, its checksum, and each digest from what it stands
for.  When a metric is first used: its domain and its mechanism are made and checked as those of any
registry, and what they spend is worked out from the numbers that they draw by.  A metric that does
not spend exactly what the file says reports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from ..core import compact_json
from ..core.base64url import is_hex
from ..core.epoch import EVERY, ONCE, is_date
from ..core.errors import RegistryError
from ..core.limits import KEY_SIZE, MAX_COMPILED, MIN_REPORTS_FLOOR
from ..core.typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from ..mechanisms import names
from .compiled_form import Entry, load_parameters
from .metric import AGGREGATES, SHAPES, Metric, digest_of, meaning_of, sha256
from .seats import DATES, LIFE, Price, Seat, dearest_week_of_lines

if TYPE_CHECKING:
    from datetime import date
    from fractions import Fraction

    from ..mechanisms import Mechanism
    from .domain import Domain
    from .encodings import Encoded
    from .longitudinal import Longitudinal

Loaded = TypeVar("Loaded")
Rule: TypeAlias = tuple[Callable[[Any], bool], str]

VERSION: Final = 1
FORMAT: Final = "hearsay_registry"  # the key of the version
_HEX: Final = frozenset("0123456789abcdef")
_LONGITUDINAL: Final = ("fresh", "permanent", "two_layer")


def canonical(document: Mapping[str, Any]) -> str:
    """Return *document* as sorted, compact JSON in ASCII."""
    return compact_json.dumps(document, sort_keys=True)


def checksum_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of *document* without its checksum, in hexadecimal."""
    rest = {key: value for key, value in document.items() if key != "checksum"}
    return sha256(canonical(rest).encode("ascii")).hex()


class CompiledMetric(Metric):
    """A metric of which the costly parts are made when they are first used."""

    @cached_property
    def whole(self) -> Metric:
        """The metric, made as that of any registry and checked against what the file says.

        Raises: RegistryError: names each field that differs.
        """
        from .assembly import assembled  # it loads all that a first report needs

        return assembled(self, self.__dict__["entry"])

    @cached_property
    def expires(self) -> date:
        """Its last day."""
        from datetime import date  # 1 ms that a start need not pay for

        return date.fromisoformat(self.__dict__["entry"]["expires"])

    @cached_property
    def domain(self) -> Domain:
        """That of the whole."""
        return self.whole.domain

    @cached_property
    def mechanism(self) -> Mechanism[Any]:
        """That of the whole."""
        return self.whole.mechanism

    @cached_property
    def policy(self) -> Longitudinal | None:
        """That of the whole."""
        return self.whole.policy

    @cached_property
    def otherwise(self) -> Encoded | None:
        """That of the whole."""
        return self.whole.otherwise

    @cached_property
    def need(self) -> Fraction | None:
        """That of the whole."""
        return self.whole.need


def load(text: str, kind: Callable[..., Loaded]) -> Loaded:
    """Return the registry that was compiled to *text*.

    Raises: RegistryError: with every problem found.
    """
    if len(text) > MAX_COMPILED:
        raise RegistryError([f"registry: must have at most {MAX_COMPILED} characters"])
    document = _parsed(text)
    separate = "separate" in document
    rules = {**_TOP, **_SEPARATE} if separate else _TOP
    problems = list(_broken("", document, rules))
    if problems:
        raise RegistryError(problems)
    if document["checksum"] != checksum_of(document):
        raise RegistryError(["checksum: must be that of the file, which was edited: compile again"])
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
    if not problems:
        problems += _wrong_seats(document)
    if problems:
        raise RegistryError(problems)
    seats = document["seats"]
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


def _wrong_seats(document: Entry) -> Iterator[str]:
    """Yield what is wrong with the seats: each metric of the panel has one, and the week holds."""
    week, seats = document["panel_week"], document["seats"]
    inside = {entry["digest"]: entry for entry in document["metrics"] if entry["panel"]}
    if (seats is None) != (week is None) or (seats is not None and seats.keys() != inside.keys()):
        yield "seats: must be of the metrics of the panel, and of no others"
    elif seats is not None and week is not None:
        drawn = [(Seat(*seats[digest]), entry) for digest, entry in inside.items()]
        if any((seat.period == LIFE) is not _is_kept(entry) for seat, entry in drawn):
            yield "seats: must be for life of metrics that keep what they told, and of no others"
            return
        outside = (entry for entry in document["metrics"] if not entry["panel"])
        cost = sum(_price(entry).of_dates(DATES) for entry in outside)
        cost += dearest_week_of_lines((seat, _price(entry)) for seat, entry in drawn)
        if cost > week:
            yield f"seats: must cost at most panel_week={week} in any seven days, not {cost}"


def _is_kept(entry: Entry) -> bool:
    return bool(entry["every"] == ONCE or entry["longitudinal"] != _LONGITUDINAL[0])


def _price(entry: Entry) -> Price:
    report, value = entry["spent"]["report"], entry["spent"]["value"]
    if value is None:
        return Price(entry["every"], report)
    return Price(entry["every"], report, value - report, entry["domain_size"])


def _parsed(text: str) -> dict[str, Any]:
    try:
        document = compact_json.loads(text, pairs=_once, number=_no_number)
    except (ValueError, RecursionError) as error:
        rule = "is no compiled registry: " + str(error).partition(":")[0]
        raise RegistryError([f"registry: {rule}"]) from None
    if not isinstance(document, dict) or document.get(FORMAT) != VERSION:
        rule = f"must be {VERSION}: compile the registry with this version of Hearsay"
        raise RegistryError([f"{FORMAT}: {rule}"])
    return document


def _no_number(text: str) -> None:
    raise ValueError("a number that is not whole")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return entries


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 12 and _HEX.issuperset(value)


def _is_seat(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(map(_is_count, value[:2]))
        and value[0] <= value[1]
        and value[2] in ("life", "7d", "28d")
    )


def _maybe(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _one_of(allowed: Iterable[str]) -> Rule:
    known = tuple(allowed)
    return (
        lambda value: isinstance(value, str) and value in known
    ), f"must be {' or '.join(known)}"


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _table(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


_TEXT: Final[Rule] = _is_text, "must be a text of printable characters"
_COUNT: Final[Rule] = _is_count, "must be a whole number"
_TABLE: Final[Rule] = (lambda value: isinstance(value, dict)), "must be an object"
_FLAG: Final[Rule] = (lambda value: type(value) is bool), "must be true or false"
_LINES: Final[Rule] = (lambda value: isinstance(value, str)), "must be a text"
_TOP: Final[dict[str, Rule]] = {
    FORMAT: _COUNT,
    "app": _TEXT,
    "automation": _one_of(("ignore", "segment")),
    "retire_key": (
        _maybe(lambda value: is_hex(value, KEY_SIZE)),
        "must be 64 hexadecimal digits, or null",
    ),
    "segments": (_table(_all(_is_text)), "must hold lists of texts"),
    "panel_week": (_maybe(_is_count), "must be a whole number, or null"),
    "seats": (_maybe(_table(_is_seat)), "must hold [low, high, period] by digest, or be null"),
    "caps": (_table(_is_text), "must hold texts"),
    "notice": _LINES,
    "metrics": (lambda value: isinstance(value, list) and bool(value), "must hold a metric"),
    "checksum": _TEXT,
}
# Absent unless it is true, so that other files keep their bytes.
_SEPARATE: Final[dict[str, Rule]] = {"separate": (lambda value: value is True, "must be true")}
_SPENT: Final[dict[str, Rule]] = {
    "report": _COUNT,
    "value": (_maybe(_is_count), "must be a whole number, or null"),
    "delta": _COUNT,
}
_METRIC: Final[dict[str, Rule]] = {
    **dict.fromkeys(("name", "title", "question", "owner", "type", "epsilon"), _TEXT),
    "explanation": _LINES,
    "domain": _TABLE,
    "domain_size": _COUNT,
    "epsilon_permanent": (_maybe(_is_text), "must be a text, or null"),
    "every": _one_of(EVERY),
    "longitudinal": _one_of(_LONGITUDINAL),
    "mechanism": (
        lambda value: isinstance(value, dict) and value.get("name") in names(),
        "must be an object with the name of a mechanism of this version",
    ),
    "constants": _TABLE,
    "digest": (_is_digest, "must be 12 hexadecimal digits"),
    "payload_size": _COUNT,
    "spent": _TABLE,
    "segments": (_all(_is_text), "must be a list of texts"),
    "expected_devices": _COUNT,
    "min_reports": (
        lambda value: type(value) is int and value >= MIN_REPORTS_FLOOR,
        f"must be an integer of at least {MIN_REPORTS_FLOOR}",
    ),
    "expires": (is_date, "must be a date such as 2027-12-31"),
    "aggregate": (_maybe(_one_of(AGGREGATES)[0]), "must be an aggregate, or null"),
    "otherwise": (
        _maybe(lambda value: isinstance(value, dict) and value.keys() == {"value", "encoded"}),
        "must hold value and encoded, or be null",
    ),
    "need": (_maybe(_is_text), "must be a text, or null"),
    "shape": _one_of(SHAPES),
    "robust": _FLAG,
    "weight": (lambda value: type(value) is int and value >= 1, "must be at least 1"),
    "panel": _FLAG,
}


def _broken(place: str, entry: Entry, rules: Mapping[str, Rule]) -> Iterator[str]:
    """Yield a line for each key that is unknown, or missing, or breaks its rule."""
    for key in sorted(entry.keys() - rules.keys()):
        printable = "".join(letter if letter.isprintable() else "?" for letter in key)
        yield f"{place}{printable}: is not a known key"
    for key, (check, rule) in rules.items():
        if key not in entry:
            yield f"{place}{key}: is missing"
        elif not check(entry[key]):
            yield f"{place}{key}: {rule}"


def _problems(
    entry: Any, segments: Mapping[str, tuple[str, ...]], own: str | None
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
    if unknown := sorted(set(entry["segments"]) - segments.keys()):
        yield f".segments: must be dimensions of the file, not {', '.join(unknown)}"
    if digest_of(_meaning_of_entry(entry, own)).hex() != entry["digest"]:
        yield ".digest: must be that of what the metric means"


def _twice(key: str, values: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            yield f"metrics.{value}: stands twice, by its {key}"
        seen.add(value)


def _meaning_of_entry(entry: Entry, app: str | None = None) -> str:
    """Return the meaning of a metric from its entry, as ``Metric.meaning`` does from its parts.

    Args: app: the application, if its reports are kept apart.
    """
    otherwise = entry["otherwise"]
    return meaning_of(
        {key: entry[key] for key in ("name", "type", "domain", "epsilon", "every", "longitudinal")},
        mechanism=load_parameters(entry["mechanism"]),
        epsilon_permanent=entry["epsilon_permanent"],
        aggregate=entry["aggregate"],
        otherwise=None if otherwise is None else otherwise["value"],
        app=app,
    )


_COPIED: Final = ("name", "title", "question", "owner", "type", "every", "longitudinal")
_NUMBERS: Final = ("expected_devices", "min_reports", "aggregate", "shape", "robust", "weight")


def _light(
    entry: Entry, segments: Mapping[str, tuple[str, ...]], app: str, own: str | None
) -> Metric:
    """Return a metric of which no domain and no mechanism is made yet."""
    metric = CompiledMetric.__new__(CompiledMetric)
    metric.__dict__.update({key: entry[key] for key in (*_COPIED, *_NUMBERS, "panel")})
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
