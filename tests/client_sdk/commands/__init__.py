"""Tests of the commands that look at what an application left."""
