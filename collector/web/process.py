"""A web process as the server starts it."""

from __future__ import annotations

import logging

from flask import Flask

from ..config import LOG_FORMAT
from ..tether import end_with_parent
from .app import create_app


def create_process() -> Flask:
    """Return the application of a process that ends with the server that started it."""
    end_with_parent()  # otherwise a killed server would leave it answering, under old keys
    logging.basicConfig(level=logging.WARNING, format=LOG_FORMAT)
    return create_app()
