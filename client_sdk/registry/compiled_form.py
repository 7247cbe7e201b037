"""How a compiled registry says the parameters of a mechanism, in integers of any language."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.typing import Any, Final, TypeAlias

Entry: TypeAlias = Mapping[str, Any]

_PLAIN: Final = 1 << 53  # every language's integers are exact below it


def dump_parameters(parameters: Mapping[str, int]) -> dict[str, int | str]:
    """Return *parameters* with those that some language could round as hexadecimal text."""
    return {
        name: number if number < _PLAIN else f"0x{number:x}" for name, number in parameters.items()
    }


def load_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was dumped; a name stays a text."""
    return {
        name: int(value, 16) if isinstance(value, str) and value[:2] == "0x" else value
        for name, value in parameters.items()
    }
