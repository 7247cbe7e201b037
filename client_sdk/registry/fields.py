"""The fields of ``metrics.toml``: its text as TOML's tables, each field by its rule, and its lock.

A text is read in little time, whoever wrote it, or refused.  Where a field breaks its rule, a
problem is added and a stand-in returned.

A registry may leave the mechanism, or its parameters, to the release that reads it; both are part
of the digest.  The lock lies beside the registry and has one line a metric: digest, mechanism and
parameters.  It is read with the registry, and either both agree or neither is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction

from ..core.dataclass import dataclass
from ..core.errors import RegistryError, nearest
from ..core.limits import MAX_EPSILON_DIGITS, MAX_EXPONENT, MAX_LABEL, MAX_NAME, MAX_REGISTRY
from ..core.typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .contract import RegistryFile
    from .metric import Metric

_NAME: Final = re.compile(rf"[a-z0-9_.]{{1,{MAX_NAME}}}", re.ASCII)
_EPSILON: Final = re.compile(rf"[0-9]{{1,3}}(\.[0-9]{{1,{MAX_EPSILON_DIGITS}}})?", re.ASCII)

_FRACTION: Final = re.compile(r"-?[0-9]{1,400}(/[1-9][0-9]{0,400})?", re.ASCII)

MAX_PARTS: Final = 32  # of a dotted key, where a registry has four; time grows as their square

# Each kind begins where none of its like goes on, and gives nothing back: the search is linear.
_PART: Final = r"""(?:(?<![\w-])[\w-]++|(?<!\\)"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?:{_PART}[ \t]*\.[ \t]*){{{MAX_PARTS}}}", re.ASCII)

_SUFFIX: Final = ".lock"
_AUTO: Final = "auto"
_LONG: Final = 1 << 53  # from which on a parameter is written in hexadecimal
_KEYS: Final = {"digest", "mechanism", "parameters"}
_HEAD: Final = """\
# Which mechanism each metric has, so that no other release of Hearsay chooses another one.
# Written by "hearsay registry lock"; keep it under version control, beside the registry.
schema = 1

[metrics]
"""


def load(text: str) -> dict[str, Any]:
    """Return the table that *text* describes.

    Raises: RegistryError: it is too long, no TOML, or beyond what TOML's reader can hold.
    """
    import tomllib  # 3 ms that an import of the SDK must not pay

    if len(text) > MAX_REGISTRY:
        raise RegistryError([f"registry: must have at most {MAX_REGISTRY} characters"])
    if _LONG_KEY.search(text):
        raise RegistryError([f"registry: must have no key of more than {MAX_PARTS} parts"])
    try:
        return tomllib.loads(text, parse_float=Decimal)
    # numbers without end, and tables within tables, are errors of the machine, not of the grammar
    except (ValueError, ArithmeticError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "is too deep or long"
        raise RegistryError([f"registry: is not TOML: {reason}"]) from None


class Problems:
    """Collects ``place: rule`` lines while a file is read."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lines: list[str] = []

    def add(self, place: str, rule: str) -> None:
        """Add one; a key may hold anything, so what cannot be printed is not."""
        line = f"{place}: {rule}"
        self.lines.append("".join(letter if letter.isprintable() else "?" for letter in line))


def labels(place: str, entry: object, problems: Problems) -> tuple[str, ...]:
    """Return a list of at least two different texts; empty if it is none."""
    rule = (
        f"must be a list of at least 2 different printable texts of at most {MAX_LABEL} characters"
    )
    if not isinstance(entry, list) or len(entry) < 2:
        problems.add(place, rule)
        return ()
    good = [label for label in entry if isinstance(label, str) and 0 < len(label) <= MAX_LABEL]
    if (
        len(good) != len(entry)
        or len(set(good)) != len(good)
        or not all(map(str.isprintable, good))
    ):
        problems.add(place, rule)
        return ()
    return tuple(good)


def label(place: str, entry: str, problems: Problems) -> str:
    """Return a text that can be one of ``labels``."""
    if not 0 < len(entry) <= MAX_LABEL or not entry.isprintable():
        problems.add(place, f"must be a printable text of at most {MAX_LABEL} characters")
        return "other"
    return entry


def refuse_unknown(
    place: str, entry: Mapping[str, Any], allowed: set[str], problems: Problems
) -> None:
    """Add a problem for each key of *entry* that is not *allowed*."""
    for key in sorted(set(entry) - allowed):
        like = nearest(key, allowed)
        rest = like or f"; known: {', '.join(sorted(allowed))}"
        problems.add(f"{place}.{key}", f"is not a known key{rest}")


def inner_metrics(entry: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the keys to each table within *entry* that is meant as a metric."""
    for key, part in entry.items():
        if isinstance(part, dict):
            if isinstance(part.get("question"), str):
                yield (key,)
            yield from ((key, *keys) for keys in inner_metrics(part))


def name(place: str, entry: object, problems: Problems) -> str:
    """Return a name as it may stand on the wire and in keys."""
    if not isinstance(entry, str) or not _NAME.fullmatch(entry):
        problems.add(place, f"a name must be 1 to {MAX_NAME} of a-z, 0-9, _ and .")
    return str(entry)


def text(place: str, entry: object, problems: Problems) -> str:
    """Return a text that is safe to print."""
    # line ends, escapes of a terminal and turns of the writing direction are not printable
    if not isinstance(entry, str) or not entry.strip() or not entry.isprintable():
        problems.add(place, "must be a non-empty text of printable characters")
    return str(entry)


def integer(place: str, entry: object, least: int, problems: Problems) -> int:
    """Return an integer of at least *least*."""
    if type(entry) is not int or entry < least:
        problems.add(place, f"must be an integer of at least {least}")
        return least
    return entry


def one_of(
    place: str, key: str, entry: Mapping[str, Any], allowed: tuple[str, ...], problems: Problems
) -> str | None:
    """Return which of *allowed* stands under *key*; None if another."""
    value = entry.get(key)
    if isinstance(value, str) and value in allowed:
        return value
    like = nearest(value, allowed) if isinstance(value, str) else ""
    problems.add(f"{place}.{key}", f"must be one of {', '.join(allowed)}{like}")
    return None


def epsilon(place: str, entry: object, problems: Problems) -> str:
    """Return a decimal of epsilon, in nats; "1" if it is none."""
    if not isinstance(entry, str) or not _EPSILON.fullmatch(entry):
        rule = f'must be a decimal in quotes, such as "1.0", at most {MAX_EPSILON_DIGITS} decimals'
        problems.add(place, rule)
        return "1"
    return entry


def fraction_of(text: object) -> object:
    """Return *text*, such as "-1/3", as a Fraction; anything else as it is."""
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        return text
    return Fraction(text)


def decimal(place: str, entry: object, problems: Problems) -> Fraction | None:
    """Return a finite number, exactly; None if it is none."""
    # TOML knows nan and inf, and 1e999999999, which as a fraction would fill the memory
    if isinstance(entry, Decimal) and entry.is_finite() and abs(entry.adjusted()) <= MAX_EXPONENT:
        return Fraction(entry)
    if isinstance(entry, int | Fraction) and not isinstance(entry, bool):
        return Fraction(entry)
    problems.add(place, "must be a finite number")
    return None


@dataclass(frozen=True)
class Lock:
    """The lines of a lock, by metric."""

    name: str  # of its file
    registry: str  # the name of the file that it belongs to
    entries: Mapping[str, Mapping[str, Any]]
    renews: bool = False  # what it does not fit is chosen anew, and no problem

    def applied(self, name: str, entry: Any) -> Any:
        """Return *entry* of a registry with what was chosen for it, where it leaves the choice."""
        line = self.entries.get(name)
        if line is None or not isinstance(entry, dict) or "parameters" in entry:
            return entry
        if entry.get("mechanism", _AUTO) not in (_AUTO, line["mechanism"]):
            return entry
        own = {"parameters": line["parameters"]} if line["parameters"] else {}
        return {**entry, "mechanism": line["mechanism"], **own}

    def fits(self, metric: Metric) -> bool:
        """Whether *metric* is the one that was locked."""
        line = self.entries.get(metric.name)
        return line is not None and line["digest"] == metric.digest.hex()

    def stale(self, metric: Metric, reason: str) -> str:
        """Return why *metric* is not the one that was locked, and what to do.

        Args: reason: why it cannot be made by its line; "" if it can.
        """
        step = f"run hearsay registry lock {self.registry}, which writes: {line_of(metric)}"
        if metric.name not in self.entries:
            return f"is not in {self.name}; {step}"
        why = reason or "its keys, or that line, were changed"
        return f"does not fit its line in {self.name}: {why}; {step}"

    def unknown(self, names: Iterable[str]) -> Iterator[str]:
        """Yield a problem for each line of a metric that is not among *names*."""
        step = f"run hearsay registry lock {self.registry}, which removes the line"
        for name in sorted(set() if self.renews else self.entries.keys() - set(names)):
            yield f"{self.name}: {name!a} is no metric of {self.registry}; {step}"


def parse_lock(text: str, name: str, registry: str) -> Lock:
    """Return the lock *text*, of the file *name* beside that of *registry*.

    Raises: RegistryError: it is no lock.
    """
    step = "put it back from version control, or delete it and run hearsay registry lock"
    try:
        table = load(text)
    except RegistryError as error:
        lines = [f"{name}: {line.partition(': ')[2]}; {step}" for line in error.problems]
        raise RegistryError(lines) from None
    entries = table.get("metrics")
    if table.get("schema") != 1 or not isinstance(entries, dict):
        rule = "must hold schema = 1 and a table [metrics]"
        raise RegistryError([f"{name}: {rule}; {step}"])
    for metric, entry in entries.items():
        if not _is_line(entry):
            rule = f"{metric!a} must have a digest, a mechanism and parameters"
            raise RegistryError([f"{name}: {rule}; {step}"])
    return Lock(name, registry, entries)


def lock_beside(path: RegistryFile) -> tuple[Any, str, str]:
    """Return where the lock of the registry at *path* lies, and the names of both files.

    None in place of the first: the registry is a resource that lies in no folder.
    """
    if isinstance(path, (str, os.PathLike)):
        own = os.fspath(path)
        beside = os.path.splitext(own)[0] + _SUFFIX
        return (None if beside == own else beside), os.path.basename(beside), os.path.basename(own)
    name = os.path.splitext(path.name)[0] + _SUFFIX
    folder = getattr(path, "parent", None)
    return None if folder is None else folder / name, name, path.name


def chosen_parameters(metric: Metric) -> dict[str, int]:
    """Return the parameters of *metric*'s mechanism that do not follow from its domain."""
    oracle = metric.mechanism if metric.policy is None else metric.policy.oracle
    fixed = metric.domain.parameters
    return {name: value for name, value in oracle.parameters.items() if name not in fixed}


def parameters_text(metric: Metric) -> str:
    """Return ``chosen_parameters`` as an inline table of TOML."""
    own = ", ".join(
        f"{name} = {value if value < _LONG else hex(value)}"
        for name, value in chosen_parameters(metric).items()
    )
    return f"{{ {own} }}" if own else "{}"


def line_of(metric: Metric) -> str:
    """Return the line of *metric* in a lock."""
    name = metric.name if "." not in metric.name else f'"{metric.name}"'
    choice = f'mechanism = "{metric.mechanism_name}", parameters = {parameters_text(metric)}'
    return f'{name} = {{ digest = "{metric.digest.hex()}", {choice} }}'


def lock_text(metrics: Mapping[str, Metric]) -> str:
    """Return the lock of *metrics*: the same registry gives the same bytes."""
    return _HEAD + "".join(f"{line_of(metric)}\n" for metric in metrics.values())


def _is_line(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() == _KEYS
        and isinstance(entry["digest"], str)
        and isinstance(entry["mechanism"], str)
        and isinstance(entry["parameters"], dict)
    )
