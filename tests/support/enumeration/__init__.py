"""Exact laws: shipped code replayed along every path, against formulas and planted bugs."""
