"""Tests of the mechanisms: laws that every one obeys, and facts about single ones."""
