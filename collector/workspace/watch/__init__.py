"""Watches: questions that are asked whenever numbers are published, and who gets their alarms."""
