"""The catalog knows current metrics by name and all metrics, old ones too, by digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.core.errors import AmbiguousMetricError, ConfigError
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


def test_an_unknown_name_is_refused_with_the_known_ones_the_nearest_first() -> None:
    with pytest.raises(UnknownMetricError) as refused:
        Catalog([CURRENT]).metric("crashd")

    first, *others = refused.value.known
    assert first == "crashed"
    assert {first, *others} == set(CURRENT.metrics)
    assert len(others) == len(CURRENT.metrics) - 1


def test_a_catalog_needs_a_registry() -> None:
    with pytest.raises(ConfigError, match="registry="):
        Catalog([])


def other_app(*, separate: bool = False, values: str = '["home", "news", "shop"]') -> Registry:
    """Return the registry of another app, with metrics of the same names."""
    app = 'app = { name = "other", separate = true }' if separate else 'app = "other"'
    text = registry_text().replace('app = "test"', app)
    return Registry.from_text(text.replace('["home", "news", "shop"]', values))


def test_two_apps_that_define_a_metric_alike_are_refused_with_what_to_write() -> None:
    """They share a digest: who reads one app would read both."""
    with pytest.raises(ConfigError, match="is defined alike in test and other") as told:
        Catalog([CURRENT, other_app()])

    assert 'app = { name = "other", separate = true }' in str(told.value)


def test_a_separate_app_shares_no_digest_whatever_it_defines_alike() -> None:
    other = other_app(separate=True)

    assert not {m.digest for m in CURRENT} & {m.digest for m in other}
    assert len(Catalog([CURRENT, other]).by_digest) == 2 * len(CURRENT.metrics)


def test_an_app_that_is_not_separate_keeps_its_digests() -> None:
    plain = Registry.from_text(registry_text().replace('"test"', '{ name = "x" }', 1))

    assert [m.digest for m in plain] == [m.digest for m in CURRENT]


def test_a_name_of_two_apps_is_refused_with_both_addresses() -> None:
    catalog = Catalog([CURRENT, other_app(separate=True)])

    with pytest.raises(AmbiguousMetricError, match="write other/page or test/page"):
        catalog.metric("page")
    assert catalog.metric("test/page").digest == CURRENT.metric("page").digest
    assert catalog.metric("other/page").address == "other/page"
    assert catalog.apps == ("test", "other")
    assert {m.address for m in catalog.of_app("other")} == {f"other/{n}" for n in CURRENT.metrics}


def test_a_metric_of_one_app_is_addressed_by_its_name_and_known_by_both() -> None:
    catalog = Catalog([CURRENT])

    assert catalog.metric("test/page") is catalog.metric("page")
    assert catalog.metric("page").address == "page"
    with pytest.raises(UnknownMetricError):
        catalog.metric("other/page")


def test_definitions_are_those_of_the_same_app() -> None:
    """Otherwise an answer would add up what two apps have counted."""
    other = other_app(separate=True)
    catalog = Catalog([CURRENT, other, OLD])

    mine = [metric.digest for metric in catalog.definitions(catalog.metric("test/page"))]
    its = [metric.digest for metric in catalog.definitions(catalog.metric("other/page"))]

    assert mine == [CURRENT.metric("page").digest, OLD.metric("page").digest]
    assert its == [other.metric("page").digest]


def test_a_token_of_one_app_asks_by_bare_names() -> None:
    both = Catalog([CURRENT, other_app(separate=True)])

    mine = both.only(lambda app, name: app == "other")

    assert mine.metric("page").address == "page"
    assert mine.apps == ("other",)
    with pytest.raises(UnknownMetricError):
        mine.metric("test/page")


def test_a_catalog_of_some_metrics_knows_no_other_by_name_or_digest() -> None:
    some = Catalog([CURRENT, OLD]).only(lambda app, name: (app, name) == ("test", "page"))

    assert [metric.name for metric in some] == ["page"]
    assert set(some.by_digest) == {r.metric("page").digest for r in (CURRENT, OLD)}
    with pytest.raises(UnknownMetricError) as caught:
        some.metric("theme")
    assert "crashed" not in str(caught.value)
