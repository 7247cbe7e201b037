"""Common strings among those that nobody listed beforehand.  Pure."""
