"""Answers over HTTP for programs: query, metrics, status, OpenAPI."""
