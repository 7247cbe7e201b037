"""The arrows between modules, as a table, and a checker that reads imports with ast."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from client_sdk.mechanisms import names as mechanism_names

PACKAGES: Final = ("client_sdk", "collector")

# The rooms that the collector takes from the device: contracts, never the device's own machinery.
SHARED: Final = {"core", "learning", "mechanisms", "privacy", "registry", "wire"}
# They drive real clients, or attack mechanisms with the device's own randomness.
DEVICE_USERS: Final = ("collector.demo", "collector.testing", "collector.audit")
# Whose mathematics is of one type of values; all others ask the domain, whatever its class.
ESTIMATORS: Final = (
    "collector.estimation.estimate",
    "collector.analytics.answer",
    "collector.analytics.distribution",
    "collector.analytics.quantiles",
    "collector.analytics.records",
    "collector.analytics.sums",
    "collector.analytics.verbs.crosstab",
    "collector.analytics.verbs.funnel",
    "collector.analytics.verbs.map",
    "collector.analytics.verbs.retention",
    "collector.analytics.verbs.variance",
    "collector.analytics.poisoning.findings",
    "collector.analytics.poisoning.influence",
    "collector.learning.factors",
    "collector.learning.naive_bayes",
    "collector.planning.amplification",
    "collector.planning.shuffling",
    "collector.planning.buckets",
    "collector.query.release.release",
)
DOMAIN_MODULES: Final = (
    "client_sdk.registry.types.items",
    "client_sdk.registry.types.places",
    "client_sdk.registry.types.record",
    "client_sdk.registry.types.vector",
    "client_sdk.registry.types.gradient",
    "client_sdk.registry.types.joint",
    "client_sdk.registry.types.numbers",
)

# A package that may be imported only in these modules, and below them.
DEVICE_PACKAGES: Final = {
    *("client_sdk", "requests", "urllib3"),
    "cryptography",  # of the extra relay
    *("pytest", "PyInstaller", "click", "typer"),  # of those who use them
    *("flask", "django", "asgiref", "celery"),  # the same
}
HOMES: Final = {
    "numpy": (
        "collector.analytics",
        "collector.demo.fleet",
        "collector.estimation",
        "collector.learning",
        "collector.planning.composition",
        "collector.planning.amplification",
        "collector.planning.binomials",
        "collector.planning.design",
        "collector.planning.weighted_sets",
        "collector.planning.two_reports",
        "collector.planning.shuffling",
        "collector.planning.buckets",
        "collector.query.release.release",
    ),
    "PyInstaller": ("client_sdk.integrations.pyinstaller",),
    "gmpy2": ("collector.issuer",),
    "click": ("client_sdk.cli", "collector.cli"),
    "typer": ("client_sdk.cli",),
    "redis": ("collector.storage",),
    "hiredis": ("collector.storage",),
    "flask": ("collector.web", "client_sdk.integrations.flask"),
    "django": ("client_sdk.integrations.django",),
    "asgiref": ("client_sdk.integrations.django",),  # a part of Django
    "celery": ("client_sdk.integrations.celery",),
    "werkzeug": ("collector.web",),
    "prometheus_client": ("collector.operations.telemetry",),
    "pyarrow": (
        "collector.client",
        "collector.query.release.publish",
        "collector.web.api.formats",
        "collector.worker.archive.files",
    ),
    "dask": ("collector.worker.archive.dask",),
    "distributed": ("collector.worker.archive.dask",),
    "requests": (
        "client_sdk.upload.connections",
        "client_sdk.upload.transport",
        "collector.client",
        "collector.demo.demo",
    ),
    "cryptography": ("client_sdk.upload.ohttp", "collector.intake", "collector.issuer"),
    "urllib3": ("client_sdk.upload.transport",),  # what requests lets through of its own errors
    "pytest": ("client_sdk.pytest_fixture",),  # which only tests of applications import
    "dataclasses": ("collector",),  # the device has its own, which loads less
    "pkgutil": ("collector", "client_sdk.core.paths"),  # it loads inspect
}
LAZY: Final = {
    "requests",
    "urllib3",
    "sqlite3",
    "ssl",
    "tomllib",
    "cryptography",
    *("click", "typer", "flask", "django", "asgiref", "celery"),
}  # on the device: in functions
PURE: Final = (
    "client_sdk.mechanisms",
    "client_sdk.privacy.budget",
    "client_sdk.privacy.caps",
    "client_sdk.privacy.wording",
    "collector.analytics",
    "collector.core.credentials",
    "collector.estimation",
    "collector.intake.validation",
    "collector.planning",
    "collector.rendering",
)
IMPURE: Final = {
    *("os", "time", "socket", "random", "secrets", "logging", "threading", "subprocess"),
    *("pathlib", "sqlite3", "redis", "flask", "requests", "urllib3"),
}


class Import(NamedTuple):
    """One import: the absolute dotted *target*, whether it waits for a call, and its line."""

    target: str
    lazy: bool
    line: int


@cache
def imports_of(source: str, module: str, is_package: bool) -> tuple[Import, ...]:
    """Return every import of *module*, at whatever depth, with relative ones resolved."""
    package = module if is_package else module.rpartition(".")[0]
    return tuple(_walk(ast.parse(source), package, lazy=False))


def faults(source: str, module: str, is_package: bool = False) -> list[str]:
    """Return the arrows that *module* breaks, as ``module -> target: rule``."""
    return [
        f"{module} -> {found.target} (line {found.line}): {rule}"
        for found in imports_of(source, module, is_package)
        for rule in _broken(module, found)
    ]


def _broken(module: str, found: Import) -> Iterator[str]:
    root = found.target.partition(".")[0]
    parts = found.target.split(".")
    for place, part in enumerate(parts[:-1] if root in PACKAGES else []):
        folder = ".".join(parts[:place])
        if part.startswith("_") and not part.endswith("__") and not _below(module, folder):
            yield f"{part} is for {folder} only: give it a public name"
    if _below(module, "collector") and _names_a_mechanism(parts):
        yield "the collector names no mechanism: it asks the families of client_sdk.mechanisms"
    for package, homes in HOMES.items():
        if _below(found.target, package) and not any(_below(module, home) for home in homes):
            yield f"{package} is imported in {', '.join(homes)} only"
    if root in IMPURE and any(_below(module, pure) for pure in PURE):
        yield "a pure module has no clock, store, network, log or chance"
    if _below(module, "client_sdk"):
        if root == "collector":
            yield "the device never imports the collector"
        elif root not in {*sys.stdlib_module_names, *DEVICE_PACKAGES}:
            yield "the device has the standard library only"
        if root in LAZY and not found.lazy:
            yield f"{root} is imported when first needed"
    elif root == "client_sdk" and not any(_below(module, user) for user in DEVICE_USERS):
        part = [*found.target.split("."), ""][1]
        if part not in {*SHARED, "__version__"}:
            yield f"the collector takes only {', '.join(sorted(SHARED))} from client_sdk"
        if _names_a_domain(found.target) and not any(_below(module, home) for home in ESTIMATORS):
            yield "a class of values is named by estimators only; ask the domain"


def _names_a_mechanism(parts: list[str]) -> bool:
    """Return whether a target is a module of the mechanisms' folder, or something in one."""
    if parts[:2] != ["client_sdk", "mechanisms"] or len(parts) == 2:
        return False
    return len(parts) > 3 or parts[2].startswith("_") or parts[2] in mechanism_names()


def _names_a_domain(target: str) -> bool:
    """Return whether an import gives a class of values, or the module that has them all."""
    module, _, name = target.rpartition(".")
    named = module in DOMAIN_MODULES and name.endswith("Domain") and name != "Domain"
    return named or target in DOMAIN_MODULES


def _below(module: str, root: str) -> bool:
    return module == root or module.startswith(f"{root}.")


def _walk(node: ast.AST, package: str, lazy: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            yield from (Import(alias.name, lazy, node.lineno) for alias in names)
        case ast.ImportFrom(module=name, names=names, level=level):
            parts = package.split(".")
            base = parts[: len(parts) - level + 1] if level else []
            path = ".".join([*base, *([name] if name else [])])
            yield from (Import(f"{path}.{alias.name}", lazy, node.lineno) for alias in names)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            lazy = True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            lazy = True
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, package, lazy)
