"""How numbers are distributed.  Pure."""
