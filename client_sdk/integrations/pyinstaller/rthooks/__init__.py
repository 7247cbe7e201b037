"""Hooks that run in a bundle before the application, listed in rthooks.dat next to this folder."""
