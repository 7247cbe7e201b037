"""Collectors that run or are called, their pages, and who visits or attacks them."""
