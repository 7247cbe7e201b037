"""The manifests of ``deploy`` as they are applied, by the tools that apply them."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
OVERLAYS: Final = ("single", "high-availability")
NO_KUBECTL: Final = "no kubectl on PATH"
NO_HELM: Final = "no helm on PATH, and no helm-python-sdk"
NO_SCHEMAS: Final = "no kubernetes-validate, which brings the schemas of Kubernetes"
NO_SYSTEMD: Final = "no systemd-analyze on PATH"
CHART: Final = DEPLOY / "helm" / "hearsay"

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason=NO_KUBECTL)
needs_helm = pytest.mark.skipif(
    shutil.which("helm") is None and find_spec("helm_python") is None, reason=NO_HELM
)
needs_schemas = pytest.mark.skipif(find_spec("kubernetes_validate") is None, reason=NO_SCHEMAS)

Thing: TypeAlias = dict[str, Any]
Things: TypeAlias = dict[tuple[str, str], Thing]  # by kind and name


def by_name(documents: Iterator[Any]) -> Things:
    """Return what is not empty, each once."""
    things: Things = {}
    for thing in documents:
        if thing:
            place = (thing["kind"], thing["metadata"]["name"])
            assert place not in things, place
            things[place] = thing
    return things


@functools.cache
def _built(folder: Path) -> str:
    return subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True
    ).stdout


def built(folder: Path) -> Things:
    """Return what ``kubectl kustomize`` makes of *folder*."""
    return by_name(yaml.safe_load_all(_built(folder)))


def overlay(name: str) -> Things:
    """Return what is applied of the overlay *name*."""
    return built(DEPLOY / "kubernetes" / name)


def with_options(folder: Path, name: str) -> Things:
    """Return overlay *name* with all options, as its own kustomization in *folder*."""
    copy = folder / "kubernetes"
    shutil.copytree(DEPLOY / "kubernetes", copy, dirs_exist_ok=True)
    top = copy / name / "kustomization.yaml"
    content = yaml.safe_load(top.read_text(encoding="utf-8"))
    options = ("../archive", "../prune", "../backup", "../watch")
    content["components"] = [*content.get("components", ()), *options]
    top.write_text(yaml.safe_dump(content), encoding="utf-8")
    return built(copy / name)


def rendered(values: Thing, *files: str) -> Things:
    """Return what Helm makes of the chart with *values* over those of its *files*.

    Raises: RuntimeError: Helm refuses.
    """
    layers = [yaml.safe_load((CHART / name).read_text(encoding="utf-8")) for name in files]
    program = shutil.which("helm")
    if program is not None:
        command = [program, "template", "hearsay", str(CHART), "--kube-version", "1.31.0"]
        for layer in (*layers, values):
            for name, value in layer.items():
                command += ["--set-json", f"{name}={json.dumps(value)}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return by_name(yaml.safe_load_all(done.stdout))
    import helm_python

    merged: Thing = {}
    for layer in (*layers, values):
        merged = overlaid(merged, layer)
    with helm_python.Chart.load(str(CHART)) as chart:
        try:
            texts = chart.render(merged, name="hearsay", namespace="hearsay")
        except helm_python.HelmError as error:
            raise RuntimeError(str(error)) from error
    return by_name(thing for text in texts.values() for thing in yaml.safe_load_all(text))


def overlaid(under: Thing, over: Thing) -> Thing:
    """Return *under* with what *over* says, as Helm lays values over each other."""
    return under | {
        key: overlaid(under[key], value)
        if isinstance(value, dict) and isinstance(under.get(key), dict)
        else value
        for key, value in over.items()
    }


def pods(things: Things) -> dict[str, Thing]:
    """Return the template of the pods that each workload starts, by its name."""
    templates: dict[str, Thing] = {}
    for (_, name), thing in things.items():
        spec = thing.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            templates[name] = spec["template"]
    return templates
