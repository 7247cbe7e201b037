"""The web process: intake, query and pages over HTTP.  The only package that imports Flask."""

from .app import create_app as create_app
