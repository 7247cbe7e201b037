"""Keys of registries: of what kind each is, in ``metrics.toml`` and in a compiled registry.

A kind is a name, with its limits behind dots, or words between strokes; a question mark at its end
is for null.  The TypeScript SDK reads the same kinds.  The schema of compiled registries follows
from them, and so does the table of that SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from ..core.base64url import is_hex
from ..core.epoch import EVERY, is_date
from ..core.limits import (
    DEFAULT_MIN_REPORTS,
    DIGEST_SIZE,
    KEY_SIZE,
    MAX_EPSILON_DIGITS,
    MAX_LABEL,
    MAX_NAME,
    MIN_REPORTS_FLOOR,
)
from ..core.typing import Any, Final, NamedTuple, TypeAlias

Entry: TypeAlias = Mapping[str, Any]  # a table of which each key has its kind
Rule: TypeAlias = tuple[Callable[[object], bool], str]

AUTO: Final = "auto"  # the mechanism that errs least
AGGREGATES: Final = {  # what a device can make of the values of an epoch, in words
    "sum": "the sum",
    "max": "the largest",
    "last": "the last",
    "most_common": "the most common",
    "any": "whether any was true",
}
ANY, GRID, SMOOTH = "any", "grid", "smooth"
SHAPES: Final = (ANY, GRID, SMOOTH)  # what may be assumed of how numbers are spread
IGNORE, SEGMENT = "ignore", "segment"  # what becomes of machines that run the application
LONGITUDINAL: Final = ("fresh", "permanent", "two_layer")  # the policies
MAX_WEIGHT: Final = 1_000  # times the usual seat of a panel
FORMAT: Final = "hearsay_registry"  # the key of the version of a compiled registry
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.")  # of names

_DIGITS: Final = frozenset("0123456789abcdef")
_PLAIN: Final = 1 << 53  # every language's integers are exact below it
_DECIMAL: Final = 2_048  # bits
REQUIRED: Final = object()  # the default of a key that has none


class Key(NamedTuple):
    """A key of a metric, or of another table of a registry."""

    name: str
    compiled: str = ""  # its kind in a compiled registry; "": it is not there
    table: str = ""  # its kind in metrics.toml; "": it is not there
    default: object = REQUIRED  # of metrics.toml
    in_digest: bool = False
    is_field: bool = False  # the metric has what a compiled registry says
    help: str = ""  # for those who read a compiled registry


OWN: Final = "own"  # the kind in metrics.toml whose rule depends on other keys, or on the file
_WORDS: Final = "|".join
_EVERY: Final = _WORDS(EVERY)
_POLICY: Final = _WORDS(LONGITUDINAL)
_REPORTS: Final = f"count.{MIN_REPORTS_FLOOR}"
_AUTOMATION: Final = _WORDS((IGNORE, SEGMENT))
_HEX_KEY: Final = f"hex.{2 * KEY_SIZE}"

FILE: Final = (
    Key(FORMAT, "count", help="Version of this format."),
    Key("app", "text", help="Name of the application."),
    Key("automation", _AUTOMATION, help="What becomes of machines that run the"
        " application: ignored, or kept apart by a segment that the device fills."),
    Key("retire_key", f"{_HEX_KEY}?", help="Ed25519 public key for lists of retired metrics."),
    Key("segments", "segments", help="Dimensions and their values."),
    Key("panel_week", "count?", help="Budget of the panel: nano-nats of any seven days."),
    Key("seats", "seats?", help="By digest: from where to where a metric lies on its line, in units"
        " of 2^-64, and how long a draw lasts."),
    Key("caps", "words", help="The caps that its texts of costs assume."),
    Key("notice", "lines", help="A text to ask a person for consent with."),
    Key("metrics", "list.1", help="What is asked."),
    Key("checksum", "hex.64", help="SHA-256 of the document without it, as compact JSON in ASCII"
        " with sorted keys."),
)  # fmt: skip
APP: Final = (  # of the table ``app``
    Key("name", "", OWN),
    Key("automation", "", _AUTOMATION, IGNORE),
    Key("retire_key", "", _HEX_KEY, None),
    Key("separate", "", "flag", False),
)
SPENT: Final = (
    Key("report", "count", help="Nano-nats of a report."),
    Key("value", "count?", help="Nano-nats of all reports of a value, if there is a bound."),
    Key("delta", "count", help="Delta of a report, in 1e-12."),
)
METRIC: Final = (  # in the order of a compiled registry
    Key("name", "text", in_digest=True, is_field=True, help="What an application calls it."),
    Key("title", "text", "text", is_field=True, help="For people; nothing depends on it."),
    Key("question", "text", "text", is_field=True, help="For people."),
    Key("explanation", "lines", help="What is asked, sent and given away, a paragraph a line, under"
        " the caps of the file."),
    Key("owner", "text", "text", is_field=True, help="Who answers for it."),
    Key("type", "text", OWN, in_digest=True, is_field=True, help="The type of its values: see"
        " docs/ask/registry.md."),
    Key("domain", "table", in_digest=True, help="What values mean, by type."),
    Key("domain_size", "count", help="What mechanisms call the size of the domain."),
    Key("epsilon", "text", "decimal", in_digest=True, help="Nats of a report, as a decimal or a"
        " fraction."),
    Key("epsilon_permanent", "text?", OWN, None, in_digest=True, help="Nats of all reports of a"
        " value, of two layers."),
    Key("every", _EVERY, _EVERY, in_digest=True, is_field=True, help="Length of an epoch, in UTC."),
    Key("longitudinal", _POLICY, _POLICY, in_digest=True, is_field=True, help="What happens when a"
        " value is reported again."),
    Key("mechanism", "table", "choice", AUTO, in_digest=True, help="Its name on the wire and its"
        " parameters; those from 2^53 on as 0x and hexadecimal digits."),
    Key("constants", "table", help="The exact numbers that chance is drawn by, by name."),
    Key("digest", f"hex.{2 * DIGEST_SIZE}", help="The name of the metric on the wire."),
    Key("payload_size", "count", help="Bytes of a report's payload."),
    Key("spent", "table", help="What the ledger is charged."),
    Key("segments", "texts", OWN, (), help="Which dimensions its reports carry, in the order of the"
        " alphabet."),
    Key("expected_devices", "count", "count.1", is_field=True, help="For the collector."),
    Key("min_reports", _REPORTS, _REPORTS, DEFAULT_MIN_REPORTS, is_field=True,
        help="For the collector: no estimate of fewer is shown."),
    Key("expires", "date", "day", help="The last day in UTC on which it is recorded."),
    Key("aggregate", f"{_WORDS(AGGREGATES)}?", OWN, None, in_digest=True, is_field=True, help="What"
        " of the values of an epoch is reported; null: the first one."),
    Key("otherwise", "encoded?", OWN, None, in_digest=True, help="What is reported of an epoch"
        " without a value."),
    Key("need", "text?", OWN, None, help="For the collector: half-width that is wished."),
    Key("shape", _WORDS(SHAPES), is_field=True, help="For the collector."),
    Key("robust", "flag", "flag", True, is_field=True, help="For the collector."),
    Key("weight", "count.1", f"range.1.{MAX_WEIGHT}", 1, is_field=True, help="Of its seat in the"
        " panel."),
    Key("panel", "flag", "flag", True, is_field=True, help="Whether it has a seat, if there is a"
        " panel."),
    Key("parameters", "", "integers", {}),
    Key("show", "", OWN, ""),
    Key("group", "", "text", ""),
)  # fmt: skip


def _is_count(value: object, least: int = 0) -> bool:
    return type(value) is int and least <= value < _PLAIN


def _is_text(value: object, *_: int) -> bool:
    # line ends, escapes of a terminal and turns of the writing direction are not printable
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_name(value: object, *_: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and _LETTERS.issuperset(value)


def _is_label(value: object, *_: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_LABEL and value.isprintable()


def _is_seat(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(type(end) is int for end in value[:2])
        and 0 <= value[0] <= value[1]
        and value[2] in ("life", "7d", "28d")
    )


def _is_decimal(value: object, *_: int) -> bool:
    whole, dot, rest = value.partition(".") if isinstance(value, str) else ("", "", "")
    digits = whole + rest
    is_short = 0 < len(whole) <= 3 and bool(dot) <= len(rest) <= MAX_EPSILON_DIGITS
    return is_short and digits.isascii() and digits.isdigit()


def _all(check: Callable[[object], bool]) -> Callable[..., bool]:
    return lambda value, *_: isinstance(value, list) and all(map(check, value))


def _table(check: Callable[[object], bool]) -> Callable[..., bool]:
    return lambda value, *_: isinstance(value, dict) and all(map(check, value.values()))


_KINDS: Final[dict[str, tuple[Callable[..., bool], str]]] = {  # what a key can be, and in words
    "choice": (lambda value, _: isinstance(value, str), '"auto" or the name of a mechanism'),
    "count": (_is_count, "an integer of at least {}, below 2^53"),
    "date": (lambda value, _: is_date(value), "a date such as 2027-12-31"),
    "day": (lambda value, _: type(value).__name__ == "date", "a date such as 2027-12-31"),
    "decimal": (
        _is_decimal,
        f'a decimal in quotes, such as "1.0", at most {MAX_EPSILON_DIGITS} decimals',
    ),
    "encoded": (
        lambda value, _: isinstance(value, dict) and value.keys() == {"value", "encoded"},
        "an object of value and encoded",
    ),
    "flag": (lambda value, _: type(value) is bool, "true or false"),
    "hex": (lambda value, digits: is_hex(value, digits // 2), "{} small hexadecimal digits"),
    "integers": (
        _table(lambda value: type(value) is int),
        "a table of integers, such as {{ order = 5 }}",
    ),
    "label": (_is_label, f"a printable text of at most {MAX_LABEL} characters"),
    "labels": (
        lambda value, _: _all(_is_label)(value) and len(value) >= 2 and len({*value}) == len(value),
        "a list of at least 2 different printable texts of at most"
        f" {MAX_LABEL} characters",
    ),
    "lines": (lambda value, _: isinstance(value, str), "a text"),
    "list": (
        lambda value, least: isinstance(value, list) and len(value) >= least,
        "a list of at least {}",
    ),
    "name": (_is_name, f"a name of 1 to {MAX_NAME} of a-z, 0-9, _ and ."),
    "range": (lambda value, least, most: _is_count(value, least) and value <= most,
              "an integer from {} to {}"),
    "seats": (_table(_is_seat), "[low, high, period] by digest"),
    "segments": (_table(_all(_is_text)), "lists of texts"),
    "table": (lambda value, _: isinstance(value, dict), "an object"),
    "text": (_is_text, "a non-empty text of printable characters"),
    "texts": (_all(_is_text), "a list of texts"),
    "words": (_table(_is_text), "texts by name"),
}  # fmt: skip


@cache
def rule_of(kind: str) -> Rule:
    """Return whether a value is of a *kind*, and what it must be, in words."""
    name, *limits = kind.rstrip("?").split(".")
    numbers = [int(limit) for limit in limits] or [0]
    known = name.split("|")
    check, words = _KINDS.get(name) or (
        lambda value, _: isinstance(value, str) and value in known,
        f"one of {', '.join(known)}",
    )
    is_nullable = kind.endswith("?")
    rule = f"must be {words.format(*numbers)}{', or null' if is_nullable else ''}"
    return (lambda value: (is_nullable and value is None) or check(value, *numbers)), rule


def dump_parameters(parameters: Mapping[str, int]) -> dict[str, int | str]:
    """Return *parameters* with those that some language could round as hexadecimal text."""
    return {
        name: number if number < _PLAIN else f"0x{number:x}" for name, number in parameters.items()
    }


def meant_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return name and parameters of a mechanism as ``Metric.meaning`` has them.

    Integers are decimal; long ones, of which Python may write no digits, are hexadecimal.
    """
    return {
        name: f"0x{value:x}" if isinstance(value, int) and value.bit_length() > _DECIMAL else value
        for name, value in parameters.items()
    }


def load_parameters(parameters: Entry) -> dict[str, Any]:
    """Return what was dumped; a name stays a text, and so does what nothing dumps."""
    return {
        name: int(value, 16) if _is_dumped(value) else value for name, value in parameters.items()
    }


def _is_dumped(value: object) -> bool:
    if not isinstance(value, str) or value[:2] != "0x":
        return False
    return len(value) > 2 and _DIGITS.issuperset(value[2:])
