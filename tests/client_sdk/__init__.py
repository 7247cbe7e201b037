"""Tests of client_sdk."""
