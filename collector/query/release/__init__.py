"""Consistent histograms: projections, and what is published of them.  Pure."""
