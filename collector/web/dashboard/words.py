"""Parameters of the pages' addresses, as the description of the routes tells them."""

from __future__ import annotations

from typing import Final

from ...query.window import RANGES
from ..operations import in_query

# A form sends a day that was not filled in as an empty one.
_DATE: Final = {"anyOf": [{"type": "string", "format": "date"}, {"const": ""}]}
RANGE_PARAMETERS: Final = (
    in_query("range", {"enum": [*RANGES, "dates", ""]}, "The period, up to today."),
    in_query("from", _DATE, "First day, with ``to``."),
    in_query("to", _DATE, "Last day, with ``from``."),
)
