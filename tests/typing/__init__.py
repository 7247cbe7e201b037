"""Uses of typed handles that must type-check, and wrong ones that must not: mypy is the test."""
