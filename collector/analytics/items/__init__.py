"""Sums, ratios and tables of shares of items.  Pure."""
