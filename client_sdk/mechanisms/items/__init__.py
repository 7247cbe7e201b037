"""Mechanisms for one item of a list."""
