"""The catalog knows current metrics by name and all metrics, old ones too, by digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.errors import ConfigError
from tests.support.crowds.uploads import registry, registry_text

CURRENT, OLD = registry(epsilon="1.0"), registry(epsilon="2.0")


def test_a_name_stands_for_the_definition_of_the_first_registry() -> None:
    catalog = Catalog([CURRENT, OLD])

    assert catalog.metric("page") is CURRENT.metric("page")
    assert [metric.digest for metric in catalog] == [metric.digest for metric in CURRENT]


def test_a_catalog_of_files_asks_the_first_file_first(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("current.toml", "old.toml")]
    for path, epsilon in zip(paths, ("1.0", "2.0"), strict=True):
        path.write_text(registry_text(epsilon=epsilon), encoding="utf-8")

    catalog = Catalog.from_files(map(str, paths))

    assert catalog.metric("page") == CURRENT.metric("page")
    assert set(catalog.by_digest) == set(Catalog([CURRENT, OLD]).by_digest)


def test_reports_under_an_old_definition_stay_known() -> None:
    catalog = Catalog([CURRENT, OLD])

    assert catalog.by_digest[OLD.metric("page").digest] == OLD.metric("page")
    assert len(catalog.by_digest) == 2 * len(CURRENT.metrics)


def test_a_definition_in_two_registries_takes_the_segment_values_of_both() -> None:
    newer = Registry.from_text(registry_text().replace('["linux", "mac"]', '["mac", "x"]'))
    catalog = Catalog([newer, CURRENT])

    known = catalog.by_digest[CURRENT.metric("page").digest]

    assert known.segments["platform"] == ("mac", "x", "linux")


def test_a_name_only_in_an_old_registry_can_still_be_asked_for() -> None:
    renamed = Registry.from_text(registry_text().replace("[metrics.page]", "[metrics.landing]"))
    catalog = Catalog([renamed, CURRENT])

    assert catalog.metric("page") is CURRENT.metric("page")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownMetricError, match="page"):
        Catalog([CURRENT]).metric("pages")


def test_a_catalog_needs_a_registry() -> None:
    with pytest.raises(ConfigError, match="registry="):
        Catalog([])


@pytest.mark.parametrize("values", ['["home", "news", "shop"]', '["home", "news", "till"]'])
def test_two_apps_must_not_have_metrics_of_one_name(values: str) -> None:
    """Answers to it would hide one of them; defined alike, who reads one app would read both."""
    text = registry_text().replace('app = "test"', 'app = "other"')
    other = Registry.from_text(text.replace('["home", "news", "shop"]', values))

    with pytest.raises(ConfigError, match="metric=page: is a metric of test and of other") as told:
        Catalog([CURRENT, other])
    assert "HEARSAY_PREFIX" in str(told.value)


def test_a_catalog_of_some_metrics_knows_no_other_by_name_or_digest() -> None:
    some = Catalog([CURRENT, OLD]).only(lambda app, name: (app, name) == ("test", "page"))

    assert [metric.name for metric in some] == ["page"]
    assert set(some.by_digest) == {r.metric("page").digest for r in (CURRENT, OLD)}
    with pytest.raises(UnknownMetricError) as caught:
        some.metric("theme")
    assert "crashed" not in str(caught.value)
