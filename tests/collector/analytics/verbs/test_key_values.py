"""Share and mean of each key, of all or of those named."""

from __future__ import annotations

import numpy as np

from collector.analytics.verb import Slice
from tests.support.crowds.asking import ask
from tests.support.device.registries import KEY_VALUE
from tests.support.enumeration.populations import metric_of


def one() -> Slice:
    metric = metric_of(KEY_VALUE, mechanism='"pckv_grr"')
    return Slice(metric, {}, 3_000, np.array([900, 600, 200, 200, 300, 200]), (0,))


def test_every_key_has_a_share_and_a_mean_in_its_unit() -> None:
    """The same rows as the metric's own question."""
    rows = ask("key_values", [one()]).rows

    assert rows == ask("estimate", [one()]).rows
    assert [row.unit for row in rows] == ["share"] * 3 + ["minutes"] * 3


def test_keys_that_are_named_have_rows_alone() -> None:
    """Both of each."""
    rows = ask("key_values", [one()], options={"keys": ["music"]}).rows

    assert [row.item for row in rows] == ["music", "mean of music"]
