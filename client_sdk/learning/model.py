"""Small public models, one JSON object a file: what a collector learned and devices compute by.

A model is made of reports alone, so it may be published; the same file is for everybody.  A device
reads it as untrusted text: every number is finite, and there are as many as
there must be, so that a wrong file is refused, and never computed with.  What a file says changes
nothing that is recorded, charged or sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf, isfinite
from os import PathLike

from ..core.base64url import is_hex
from ..core.compact_json import unique
from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError
from ..core.limits import DIGEST_SIZE
from ..core.paths import PathOrStr
from ..core.typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from ..registry.metric import Metric

VERSION: Final = 1
MAX_MODEL: Final = 4_000_000  # bytes; the largest that we write has some 500 kB
_HEAD: Final = ("hearsay_model", "kind", "metric", "definition", "reports", "epsilon")


@dataclass(frozen=True)
class Model:
    """A model learned from a metric: a head that all kinds have, and the ``parts`` of its kind.

    ``definition`` is the metric's digest in hexadecimal digits, ``epsilon`` the cost of a report
    as in its registry, and ``reports`` how many devices the model was learned from.
    """

    kind: str
    metric: str
    definition: str
    reports: int
    epsilon: str
    parts: Mapping[str, Any]

    @classmethod
    def of(cls, kind: str, metric: Metric, reports: int, parts: Mapping[str, object]) -> Model:
        """Return the model of a *kind* that so many *reports* of *metric* gave."""
        return cls(kind, metric.name, metric.digest.hex(), reports, str(metric.epsilon), parts)

    def text(self) -> str:
        """Return the file.  Raises ValueError: a number is not finite."""
        head = (VERSION, self.kind, self.metric, self.definition, self.reports, self.epsilon)
        form = {**dict(zip(_HEAD, head, strict=True)), **self.parts}
        return json.dumps(form, ensure_ascii=False, allow_nan=False) + "\n"

    def labels(self, key: str) -> tuple[str, ...]:
        """Return the texts of the part *key*, all different.  Raises InvalidParameterError."""
        texts = self.parts.get(key)
        if (
            isinstance(texts, list)
            and all(isinstance(text, str) for text in texts)
            and len(set(texts)) == len(texts) > 0
        ):
            return tuple(texts)
        raise wrong(f"{key} must be a list of different texts")

    def numbers(
        self, key: str, length: int, least: float = -inf, most: float = inf
    ) -> tuple[float, ...]:
        """Return the part *key*, so many finite numbers.  Raises InvalidParameterError."""
        return numbers_of(self.parts.get(key), key, length, least, most)

    def table(
        self, key: str, rows: int, columns: int, least: float = -inf, most: float = inf
    ) -> tuple[tuple[float, ...], ...]:
        """Return the part *key*, so many rows of finite numbers.  Raises InvalidParameterError."""
        entries = self.parts.get(key)
        if not isinstance(entries, list) or len(entries) != rows:
            raise wrong(f"{key} must be a list of {rows} lists")
        return tuple(numbers_of(row, key, columns, least, most) for row in entries)

    def require(self, kind: str, metric: Metric | None = None) -> None:
        """Raise InvalidParameterError unless it is of *kind*, and learned of *metric* as it is."""
        if self.kind != kind:
            raise wrong(f"must be of kind {kind}")
        if metric is not None and (self.metric, self.definition) != (
            metric.name,
            metric.digest.hex(),
        ):
            raise wrong(f"must be learned of {metric.name} as this registry defines it")


ModelSource: TypeAlias = Model | bytes | PathOrStr


def read(source: ModelSource) -> Model:
    """Return the model in a file, or the bytes of one, or one that was read before.

    Raises: InvalidParameterError: it cannot be read, or is no model of this version.
    """
    if isinstance(source, Model):
        return source
    text = source if isinstance(source, bytes) else _file(source)
    if len(text) > MAX_MODEL:
        raise wrong(f"must have at most {MAX_MODEL} bytes")
    if not text.lstrip().startswith(b"{"):
        is_path = " (a path is given as str, not as bytes)" if isinstance(source, bytes) else ""
        raise wrong(f"must be one JSON object{is_path}")
    try:
        form = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise wrong("must be one JSON object in UTF-8, each name once") from None
    if not isinstance(form, dict) or not form.keys() >= set(_HEAD):
        raise wrong(f"must be an object with {', '.join(_HEAD)}")
    version, kind, metric, definition, reports, epsilon = (form.pop(key) for key in _HEAD)
    if type(version) is not int or version != VERSION:
        raise wrong(f"hearsay_model must be {VERSION}; a later version of the SDK may know it")
    if not all(isinstance(text, str) for text in (kind, metric, epsilon)):
        raise wrong("kind, metric and epsilon must be texts")
    if not is_hex(definition, DIGEST_SIZE) or type(reports) is not int or reports < 0:
        raise wrong("definition must be a digest, and reports how many there were")
    return Model(kind, metric, definition, reports, epsilon, form)


def numbers_of(
    entries: object, key: str, length: int, least: float = -inf, most: float = inf
) -> tuple[float, ...]:
    """Return *entries* if they are so many finite numbers.  Raises InvalidParameterError."""
    if isinstance(entries, list) and len(entries) == length:
        numbers = tuple(map(_number, entries))
        if all(isfinite(number) and least <= number <= most for number in numbers):
            return numbers
    between = "" if (least, most) == (-inf, inf) else f" from {least:g} to {most:g}"
    raise wrong(f"{key} must have {length} finite numbers{between}")


def wrong(rule: str) -> InvalidParameterError:
    """Return the error of a file that breaks *rule*; nothing of the file is repeated."""
    return InvalidParameterError("model", "***", f"{rule}; take the file that hearsay learn wrote")


def _number(entry: object) -> float:
    if type(entry) not in (int, float):
        return inf
    try:
        return float(entry)  # type: ignore[arg-type] # one of these two
    except OverflowError:
        return inf


def _file(path: object) -> bytes:
    if not isinstance(path, str | PathLike):
        raise InvalidParameterError("model", type(path).__name__, "must be a path or bytes")
    if isinstance(path, str) and (not path.isprintable() or path.lstrip()[:1] in ("{", "[", '"')):
        raise InvalidParameterError("model", "***", "is no path; give the text of a file as bytes")
    try:
        with open(path, "rb") as file:
            return file.read(MAX_MODEL + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no path"
        raise InvalidParameterError("model", path, f"cannot be read: {why}") from error
