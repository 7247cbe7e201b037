"""From the text of a registry to TOML's tables, whoever wrote it: in little time, or refused."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from .core.errors import RegistryError

MAX_TEXT: Final = 1 << 20  # characters; some 50,000 labels
MAX_PARTS: Final = 32  # of a dotted key, where a registry has four; time grows as their square

# Each kind begins where none of its like goes on, and gives nothing back: the search is linear.
_PART: Final = r"""(?:(?<![\w-])[\w-]++|(?<!\\)"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY: Final = re.compile(rf"(?:{_PART}[ \t]*\.[ \t]*){{{MAX_PARTS}}}", re.ASCII)


def load(text: str) -> dict[str, Any]:
    """Return the table that *text* describes.

    Raises: RegistryError: it is too long, no TOML, or beyond what TOML's reader can hold.
    """
    import tomllib  # 3 ms that an import of the SDK must not pay

    if len(text) > MAX_TEXT:
        raise RegistryError([f"registry: must have at most {MAX_TEXT} characters"])
    if _LONG_KEY.search(text):
        raise RegistryError([f"registry: must have no key of more than {MAX_PARTS} parts"])
    try:
        return tomllib.loads(text, parse_float=Decimal)
    # numbers without end, and tables within tables, are errors of the machine, not of the grammar
    except (ValueError, ArithmeticError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "is too deep or long"
        raise RegistryError([f"registry: is not TOML: {reason}"]) from None
