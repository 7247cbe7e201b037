"""The lock of a registry: which mechanism and parameters a release chose for each metric.

A registry may leave the mechanism, or its parameters, to the release that reads it; both are part
of the digest.  The lock lies next to the registry and has one line a metric: digest, mechanism and
parameters.  It is read with the registry, and either both agree or neither is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from ..core.dataclass import dataclass
from ..core.errors import RegistryError
from ..core.paths import RegistryFile
from ..core.typing import TYPE_CHECKING, Any, Final
from .fields import load
from .keys import AUTO, dump_parameters

if TYPE_CHECKING:
    from .metric import Metric

_SUFFIX: Final = ".lock"
_KEYS: Final = {"digest", "mechanism", "parameters"}
_HEAD: Final = """\
# Which mechanism each metric has, so that no other release of Hearsay chooses another one.
# Written by "hearsay registry lock"; keep it under version control, beside the registry.
schema = 1

[metrics]
"""


@dataclass(frozen=True)
class Lock:
    """The lines of a lock, by metric."""

    name: str  # of its file
    registry: str  # the name of the file that it belongs to
    entries: Mapping[str, Mapping[str, object]]
    renews: bool = False  # what it does not fit is chosen anew, and no problem

    def applied(self, name: str, entry: object) -> object:
        """Return *entry* of a registry with what was chosen for it, where it leaves the choice."""
        line = self.entries.get(name)
        if line is None or not isinstance(entry, dict) or "parameters" in entry:
            return entry
        if entry.get("mechanism", AUTO) not in (AUTO, line["mechanism"]):
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
    """Return the lock in *text*, read from the file *name* next to the file *registry*.

    Raises: RegistryError: *text* is no lock.
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
        f"{name} = {value}" for name, value in dump_parameters(chosen_parameters(metric)).items()
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


def _is_line(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() == _KEYS
        and isinstance(entry["digest"], str)
        and isinstance(entry["mechanism"], str)
        and isinstance(entry["parameters"], dict)
    )
