"""Before anything is collected: precision to expect, ε to spend, registries to check."""
