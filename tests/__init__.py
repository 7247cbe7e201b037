"""Tests of hearsay, mirroring the packages."""
