"""Registries with a panel, and the devices that draw from it."""

from __future__ import annotations

from client_sdk.privacy.panel import Panel, panel_of
from client_sdk.registry import Registry
from tests.support.device.device import metric_text


def registry(*metrics: str, week: str = "8") -> Registry:
    """Return a registry with a panel of *metrics*."""
    head = f'schema = 1\napp = "demo"\n[panel]\nweek = "{week}"\n'
    return Registry.from_text(head + "".join(metrics))


def weekly(name: str, extra: str = "", epsilon: str = "1", every: str = "7d") -> str:
    """Return a yes-or-no metric with *extra* lines."""
    return metric_text(name, f'type = "boolean"\n{extra}', epsilon=epsilon, every=every)


def kept(name: str, epsilon: str = "1") -> str:
    """Return a yes-or-no metric of permanent responses."""
    text = metric_text(name, epsilon=epsilon, every="7d")
    return text.replace('longitudinal = "fresh"', 'longitudinal = "permanent"')


def twelve() -> Registry:
    """Return twelve weekly metrics, of which a cap of 8 pays for four at once."""
    return registry(*(weekly(f"metric_{i}") for i in range(12)))


def panel(of: Registry) -> Panel:
    """Return the panel of a registry that has one."""
    assert of.panel_week is not None
    return panel_of(of, of.panel_week)


def secret_of(device: int) -> bytes:
    """Return the secret of a simulated device."""
    return device.to_bytes(32, "big")


def members(of: Registry, device: int, epoch: int) -> list[str]:
    """Return of which metrics of a week a device may report."""
    drawn = panel(of)
    return [m.name for m in of if drawn.includes(m, epoch, secret_of(device))]
