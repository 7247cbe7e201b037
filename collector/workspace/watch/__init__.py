"""Watches: questions that are asked whenever numbers are published, and who is told of an alarm."""
