"""Bugs at random places of the source, and whether the tests see them: ``make mutants``."""
