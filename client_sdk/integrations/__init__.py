"""Hooks and middleware for hosts of applications; each imports its host only when it is used.

``web`` has the metrics that the middleware of all frameworks records.
"""
