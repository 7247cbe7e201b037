"""Charts as SVG text.  Pure: rows in, markup out; the same in pages, notebooks and docs."""

from .frame import Before as Before
from .frame import ChartOptions as ChartOptions
from .frame import Mark as Mark
from .kinds import chart_of as chart_of
from .kinds import pictures_of as pictures_of
from .page import page_chart as page_chart
