"""Ours beside the libraries that others use."""
