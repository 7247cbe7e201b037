"""Attacks on mechanisms, to measure the ε that they keep."""
