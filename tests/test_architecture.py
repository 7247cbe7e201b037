"""The arrows between modules: who may import whom.  The table is in tests/support/arrows.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.arrows import PACKAGES, Import, faults, imports_of
from tests.support.loops import in_turn

ROOT = Path(__file__).parent.parent
FILES = sorted(
    path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
)


def module_of(path: Path) -> tuple[str, bool]:
    """Return the dotted name of a file, and whether it is a package's own."""
    parts = path.with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


@in_turn("path", FILES)
def test_no_module_imports_against_the_arrows(path: Path) -> None:
    module, is_package = module_of(path)

    assert faults((ROOT / path).read_text("utf-8"), module, is_package) == []


def test_both_packages_are_looked_at() -> None:
    assert {path.parts[0] for path in FILES} == set(PACKAGES)


@pytest.mark.parametrize(
    ("module", "source", "rule"),
    [
        (
            "client_sdk.registry.metric",
            "import collector.estimation.tally",
            "never imports the collector",
        ),
        ("client_sdk.registry.metric", "from numpy import array", "standard library only"),
        ("client_sdk.testing", "import pytest", "pytest is imported in"),
        (
            "client_sdk.registry.metric",
            "def f():\n    import requests",
            "client_sdk.upload.transport",
        ),
        ("client_sdk.upload.transport", "import requests", "when first needed"),
        ("client_sdk.storage.store", "class A:\n    import sqlite3", "when first needed"),
        ("client_sdk.mechanisms.items.grr", "import os", "a pure module"),
        (
            "client_sdk.mechanisms.items.grr",
            "from ...upload.uploader import time\nimport random",
            "a pure module",
        ),
        ("collector.worker.worker", "import numpy as np", "numpy is imported in"),
        ("collector.web.api.query", "import numpy", "numpy is imported in"),
        ("collector.worker.worker", "from redis import Redis", "redis is imported in"),
        ("collector.intake.validation", "from flask import request", "flask is imported in"),
        ("collector.intake.validation", "def f():\n    import time", "a pure module"),
        ("collector.rendering.charts.bars", "from os import path", "a pure module"),
        ("collector.analytics.answer", "import socket", "a pure module"),
        (
            "collector.core.catalog",
            "from client_sdk.storage.ledger import Ledger",
            "the collector takes only",
        ),
        ("collector.core.catalog", "from client_sdk import Client", "the collector takes only"),
        ("collector.core.catalog", "import client_sdk.storage.store", "the collector takes only"),
        (
            "collector.planning.registry_report",
            "from client_sdk.registry.types.items import SetDomain",
            "ask the domain",
        ),
        (
            "collector.web.api.query",
            "from client_sdk.registry.types import items",
            "ask the domain",
        ),
        (
            "collector.rendering.charts.kinds",
            "def f():\n    from client_sdk.registry.types.joint import PairDomain",
            "ask the domain",
        ),
        (
            "collector.estimation.estimate",
            "from client_sdk.mechanisms.items.grr import GRR",
            "names no mechanism",
        ),
        (
            "collector.estimation.estimate",
            "from client_sdk.mechanisms.items import olh",
            "names no mechanism",
        ),
        ("collector.audit.audit", "import client_sdk.mechanisms.items.oue", "names no mechanism"),
        (
            "collector.estimation.tally",
            "from client_sdk.mechanisms.numbers import _sums",
            "names no mechanism",
        ),
        (
            "client_sdk.registry.metric",
            "from ..mechanisms.numbers._sums import Sums",
            "give it a public name",
        ),
        ("collector.audit.audit", "from ..web._pages import layout", "give it a public name"),
    ],
)
def test_a_planted_import_against_an_arrow_is_found(module: str, source: str, rule: str) -> None:
    found = faults(source, module)

    assert len(found) >= 1
    assert any(rule in fault for fault in found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("client_sdk.upload.transport", "def send():\n    import requests"),
        ("client_sdk.upload.transport", "if TYPE_CHECKING:\n    import requests"),
        ("client_sdk.pytest_fixture", "import pytest"),
        ("client_sdk.mechanisms.items.grr", "from ...core.errors import X\nimport math"),
        ("collector.estimation.tally", "import numpy as np"),
        (
            "collector.planning.registry_report",
            "from client_sdk.registry.domain import SHARE, Domain",
        ),
        (
            "collector.analytics.verbs.funnel",
            "from client_sdk.registry.types.joint import FunnelDomain",
        ),
        ("collector.storage.redis", "import redis"),
        ("collector.web.app", "from flask import Flask\nfrom . import health"),
        ("collector.cli", "def serve():\n    from .web import create_app"),
        ("collector.demo.fleet", "from client_sdk.client import Client"),
        (
            "collector.core.catalog",
            "from client_sdk.registry.metric import Metric\nfrom client_sdk.core import epoch",
        ),
        ("collector.webhooks", "import os"),
        (
            "collector.estimation.estimate",
            "from client_sdk.mechanisms import FrequencyOracle, load",
        ),
        ("client_sdk.mechanisms.items.grr", "from ._base import Mechanism"),
    ],
)
def test_an_import_along_the_arrows_is_let_through(module: str, source: str) -> None:
    assert faults(source, module) == []


def test_relative_imports_are_resolved_from_modules_and_from_packages() -> None:
    from_module = imports_of("from ..core.errors import X", "collector.web.app", is_package=False)
    from_package = imports_of("from .app import X", "collector.web", is_package=True)

    assert from_module == (Import("collector.core.errors.X", False, 1),)
    assert from_package == (Import("collector.web.app.X", False, 1),)
