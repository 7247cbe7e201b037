"""Uploads over HTTP."""
