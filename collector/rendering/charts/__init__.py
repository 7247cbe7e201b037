"""Charts as SVG text.  Pure: rows in, markup out; the same in pages, notebooks and docs."""

from .frame import Face as Face
from .kinds import chart_of as chart_of
