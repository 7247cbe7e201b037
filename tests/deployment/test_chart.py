"""Laws of the Helm chart: it says what the manifests say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from client_sdk import __version__
from tests.support.deployment import (
    CHART,
    DEPLOY,
    Things,
    needs_helm,
    needs_kubectl,
    overlay,
    rendered,
    with_options,
)

WITH_ALL = {name: {"enabled": True} for name in ("archive", "prune", "backup", "watch")}
EXTERNAL = {"externalStore": {"cidr": "192.0.2.0/24"}}
HA = "values-high-availability.yaml"


def without_namespace(things: Things) -> Things:
    """Return *things* as Helm has them, which is told a namespace and makes none."""
    for thing in things.values():
        thing["metadata"].pop("namespace", None)
    return {place: thing for place, thing in things.items() if place[0] != "Namespace"}


def test_the_templates_are_made_from_the_manifests() -> None:
    program = [sys.executable, str(DEPLOY / "helm" / "make_chart.py"), "--check"]

    done = subprocess.run(program, capture_output=True, text=True, check=False)

    assert (done.stdout, done.returncode) == ("", 0)


def test_the_chart_has_the_version_of_what_it_installs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@needs_kubectl
@needs_helm
def test_helm_and_kustomize_make_the_same_of_a_single_store() -> None:
    assert rendered({}) == without_namespace(overlay("single"))


@needs_kubectl
@needs_helm
def test_helm_and_kustomize_make_the_same_of_a_store_elsewhere() -> None:
    assert rendered(EXTERNAL, HA) == without_namespace(overlay("high-availability"))


@needs_kubectl
@needs_helm
@pytest.mark.parametrize("name", ["single", "high-availability"])
def test_helm_and_kustomize_make_the_same_of_every_option(tmp_path: Path, name: str) -> None:
    values, files = (WITH_ALL, []) if name == "single" else (WITH_ALL | EXTERNAL, [HA])

    assert rendered(values, *files) == without_namespace(with_options(tmp_path, name))


@needs_helm
def test_a_chart_without_a_store_must_be_told_where_one_is() -> None:
    with pytest.raises(RuntimeError, match=r"externalStore\.cidr: must name the network"):
        rendered({}, HA)


@needs_helm
def test_a_value_reaches_what_it_is_about() -> None:
    things = rendered(
        {
            "image": "example.org/hearsay:7",
            "web": {"replicas": 5, "memory": "2Gi"},
            "settings": {"HEARSAY_ORIGIN": "https://stats.example.org"},
            "store": {"size": "99Gi"},
        }
    )

    web = things["Deployment", "hearsay-web"]["spec"]
    (own,) = web["template"]["spec"]["containers"]
    assert (web["replicas"], own["image"]) == (5, "example.org/hearsay:7")
    assert own["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}
    settings = things["ConfigMap", "hearsay-settings"]["data"]
    assert settings["HEARSAY_ORIGIN"] == "https://stats.example.org"
    (claim,) = things["StatefulSet", "hearsay-store"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "99Gi"
