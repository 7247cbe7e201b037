"""Mechanisms for numbers."""
