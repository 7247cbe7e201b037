"""Queries over tallies.  Pure: no store, no clock; integers in, rows with intervals out."""
