"""The registry: the contract that device, collector and docs all read, as a checked value.

It is written as ``metrics.toml``, and devices may read it compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from os import PathLike
from os.path import exists

from ..core.dataclass import dataclass
from ..core.errors import RegistryError, UnknownMetricError
from ..core.limits import MAX_COMPILED
from ..core.paths import RegistryFile
from ..core.typing import IO, TYPE_CHECKING, Final
from .keys import IGNORE, SEGMENT
from .metric import AUTOMATED, DIMENSION, PEOPLE, Metric

if TYPE_CHECKING:
    from .lock import Lock

_BEGIN: Final = 1 << 10  # letters within which a compiled registry begins


@dataclass(frozen=True)
class Registry:
    """The metrics of an application and its segment dimensions, as a checked, immutable value."""

    app: str
    segments: Mapping[str, tuple[str, ...]]
    metrics: Mapping[str, Metric]
    panel_week: int | None = None  # nano-epsilon of any seven days; None: there is no panel
    automation: str = IGNORE  # or SEGMENT
    retire_key: str | None = (
        None  # key that signs lists of retired metrics, hexadecimal; None: no lists
    )
    # of the panel, by digest: low and high end and period; None: not worked out
    seats: Mapping[bytes, tuple[int, int, str]] | None = None
    separate: bool = False  # the app is in the digest of each metric

    @classmethod
    def of(cls, source: Registry | RegistryFile) -> Registry:
        """Return *source*, or the registry of that file.  Raises RegistryError."""
        return source if isinstance(source, Registry) else cls.from_file(source)

    @classmethod
    def from_file(cls, path: RegistryFile) -> Registry:
        """Read a registry file, or a resource of a package, which may lie in a zip.

        Its lock is read, too: for ``metrics.toml`` that is ``metrics.lock``.
        Raises: RegistryError: it cannot be read, or breaks a rule; all problems are listed.
        """
        # a text is not shown, as it may be long
        if isinstance(path, str) and not {"\n", "\0"}.isdisjoint(path):
            raise RegistryError(["registry: must be a path; Registry.from_text takes the text"])
        text = read_text(path)
        return cls.resolved(text, None if is_compiled(text) else lock_of(path))

    @classmethod
    def from_text(cls, text: str, lock: str | None = None) -> Registry:
        """Read a registry from TOML *text*, or from a compiled one, which begins with a brace.

        Args:   lock: the text of its lock, if it has one; a compiled registry needs none.
        Raises: RegistryError: with all problems.
        """
        if lock is None or is_compiled(text):
            return cls.resolved(text, None)
        from .lock import parse_lock

        return cls.resolved(text, parse_lock(lock, "metrics.lock", "metrics.toml"))

    @classmethod
    def resolved(cls, text: str, lock: Lock | None) -> Registry:
        """Read a registry from *text*, with what *lock* says was chosen.  Raises RegistryError."""
        if is_compiled(text):
            from .compiled import load

            return load(text, cls)
        from .registry import parse  # a device with a compiled registry has no use for it

        app, segments, metrics, week = parse(text, lock)
        return cls(
            app=app.name,
            segments=segments,
            metrics={metric.name: metric for metric in metrics},
            panel_week=week,
            automation=app.automation,
            retire_key=app.retire_key,
            separate=app.separate,
        )

    def __iter__(self) -> Iterator[Metric]:
        """Iterate over the metrics in the order of the file."""
        return iter(self.metrics.values())

    def metric(self, name: str) -> Metric:
        """Return the metric called *name*.  Raises UnknownMetricError."""
        try:
            return self.metrics[name]
        except KeyError:
            raise UnknownMetricError(name, tuple(self.metrics)) from None

    @cached_property
    def aggregated(self) -> tuple[Metric, ...]:
        """The metrics whose values add up on the device until their epoch is over."""
        return tuple(metric for metric in self if metric.aggregate is not None)

    @cached_property
    def by_digest(self) -> Mapping[bytes, Metric]:
        """The metrics by their name on the wire."""
        return {metric.digest: metric for metric in self}

    def whole_segment(self, segment: Mapping[str, str], *, automated: bool) -> Mapping[str, str]:
        """Return *segment* with what a device fills in itself: whether it is *automated*.

        Raises: RegistryError: a dimension or value is not declared.
        """
        if self.automation == SEGMENT:
            segment = {DIMENSION: AUTOMATED if automated else PEOPLE, **segment}
        self.require_segment(segment)
        return segment

    def require_segment(self, segment: Mapping[str, str]) -> None:
        """Raise RegistryError unless every dimension and value of *segment* is declared."""
        problems = [
            f"segment.{dimension}: must be a declared dimension with one of its values"
            for dimension, value in segment.items()
            if value not in self.segments.get(dimension, ())
        ]
        if problems:
            raise RegistryError(problems)


def is_compiled(text: str) -> bool:
    """Whether *text* is a compiled registry, which begins with a brace."""
    return text[:_BEGIN].lstrip()[:1] == "{"


def read_text(path: RegistryFile) -> str:
    """Return the text of the file at *path*.  Raises RegistryError: it cannot be read."""
    try:
        with _opened(path) as file:
            # one character more than is taken; editors of Windows begin with a mark
            return file.read(MAX_COMPILED + 1).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        rule = "must be text in UTF-8, and is not (UTF-16?): save it in that encoding"
        raise RegistryError([f"registry={path}: {rule}"]) from error
    except OSError as error:
        raise RegistryError([f"registry={path}: cannot be read: {error}"]) from error


def lock_of(path: RegistryFile) -> Lock | None:
    """Return the lock of the registry at *path*; None if there is none.

    Raises: RegistryError: it cannot be read, or is no lock.
    """
    from .lock import lock_beside, parse_lock

    beside, name, registry = lock_beside(path)
    if beside is None or not (exists(beside) if isinstance(beside, str) else beside.is_file()):
        return None
    return parse_lock(read_text(beside), name, registry)


def _opened(path: RegistryFile) -> IO[str]:
    if isinstance(path, (str, PathLike)):
        return open(path, encoding="utf-8")
    if callable(getattr(path, "joinpath", None)):  # a resource need not be a file
        return path.open(encoding="utf-8")
    rule = "must be a Registry, the path of its file, or a resource; from_text takes the text"
    raise RegistryError([f"registry={type(path).__name__}: {rule}"])
