"""Stores, real and in memory, and the processes that work on them."""
