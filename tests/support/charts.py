"""Each kind of chart as the text of an SVG of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from collector.analytics.rows import Row
from collector.rendering.charts import bars as of_rows
from collector.rendering.charts import distribution
from collector.rendering.charts.frame import DEFAULT, ChartOptions, Picture, finish
from collector.rendering.charts.heat import heat_picture
from collector.rendering.charts.line import line_picture
from collector.rendering.charts.map import grid_picture


def _chart(picture: Callable[..., Picture]) -> Callable[..., str]:
    def chart(
        rows: Sequence[Row],
        title: str,
        options: ChartOptions = DEFAULT,
        *more: Any,
        **more_options: Any,
    ) -> str:
        return finish(picture(rows, title, options, *more, **more_options), options)

    return chart


bars = _chart(of_rows.bars_picture)
dots = _chart(of_rows.dots_picture)
difference = _chart(of_rows.difference_picture)
line = _chart(line_picture)
heat = _chart(heat_picture)
histogram = _chart(distribution.histogram_picture)
cdf = _chart(distribution.cdf_picture)
grid = _chart(grid_picture)
