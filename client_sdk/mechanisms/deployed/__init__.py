"""Mechanisms as others have deployed them, for comparison with what they published."""
