"""Mechanisms for values of several parts: sets, key-values, strings."""
