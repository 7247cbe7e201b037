"""What the routes of one application share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flask import Flask, current_app

from ..catalog import Catalog
from ..config import Config
from ..storage import Storage

_NAME: Final = "hearsay"


@dataclass(frozen=True)
class Services:
    """What a route may use: settings, metrics, store, and Unix time in seconds."""

    config: Config
    catalog: Catalog
    storage: Storage
    clock: Callable[[], float]

    def attach(self, app: Flask) -> None:
        """Let the routes of *app* find these services."""
        app.extensions[_NAME] = self


def services() -> Services:
    """Return what the running application was built with."""
    shared: Services = current_app.extensions[_NAME]
    return shared
