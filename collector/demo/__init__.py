"""The demonstration: simulated people with real answers, and a collector of its own."""
