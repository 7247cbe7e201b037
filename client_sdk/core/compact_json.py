"""JSON without spaces, in ASCII, read and written by the interpreter's own functions in C.

The module ``json`` around them loads ``re`` and ``enum``: 5 ms of a start.  It is asked where the
interpreter has no such functions, and whenever something is wrong, so every error is its own.
"""

from __future__ import annotations

from collections.abc import Callable

from .typing import Any, Final, NamedTuple

_SPACE: Final = " \t\n\r"
_CONSTANTS: Final = {name: float(name) for name in ("-Infinity", "Infinity", "NaN")}


class _Decoder:
    """What the scanner asks of a decoder."""

    strict, object_hook, parse_int = True, None, int

    def __init__(
        self, pairs: Callable[..., Any] | None = None, number: Callable[[str], Any] | None = None
    ) -> None:
        self.object_pairs_hook = pairs
        self.parse_float, self.parse_constant = number or float, number or _CONSTANTS.__getitem__


class _Functions(NamedTuple):
    """Of the interpreter: make what writes, make what reads, write a text."""

    encoder: Any
    scanner: Any
    quoted: Any


def _of_interpreter() -> _Functions | None:
    try:
        own: Any = __import__("_json")
        functions = _Functions(own.make_encoder, own.make_scanner, own.encode_basestring_ascii)
        _encoder(functions, None, sort_keys=False)
        functions.scanner(_Decoder())
    except (ImportError, AttributeError, TypeError):  # another interpreter, or a later version
        return None
    return functions


def _encoder(functions: _Functions, default: Callable[..., Any] | None, *, sort_keys: bool) -> Any:
    rest = (None, ":", ",", sort_keys, False, True)  # as ``json.JSONEncoder`` gives them
    return functions.encoder({}, default or _refuse, functions.quoted, *rest)


def _refuse(value: object) -> None:
    from json import JSONEncoder

    JSONEncoder().default(value)  # it raises TypeError


_functions: Final = _of_interpreter()


def dumps(
    value: object, *, sort_keys: bool = False, default: Callable[[Any], Any] | None = None
) -> str:
    """Return *value* as text, as ``json.dumps`` does without spaces.

    Args:   default: returns what stands for a value that has no form of its own.
    Raises: TypeError, ValueError: as that.
    """
    if _functions is not None:
        return "".join(_encoder(_functions, default, sort_keys=sort_keys)(value, 0))
    import json

    return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), default=default)


def loads(
    text: str,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    number: Callable[[str], Any] | None = None,
) -> Any:
    """Return what *text* says, as ``json.loads`` does.

    Args:   pairs: makes an object of its keys and values.  number: makes a number that is not
            whole of its text.
    Raises: ValueError, RecursionError: as that; and what *pairs* and *number* raise.
    """
    if _functions is not None:
        start = len(text) - len(text.lstrip(_SPACE))
        try:
            value, end = _functions.scanner(_Decoder(pairs, number))(text, start)
        except StopIteration:  # there is no value
            end = -1
        if end >= 0 and not text[end:].strip(_SPACE):
            return value
    import json

    return json.loads(text, object_pairs_hook=pairs, parse_float=number, parse_constant=number)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of *pairs*, keys and values.  Raises ValueError: a key stands twice."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return entries
