"""Charts as SVG text.  Pure: rows in, markup out; the same in pages, notebooks and docs."""

from .bars import bars as bars
