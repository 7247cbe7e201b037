"""How numbers of slices differ, and whether that is more than noise.  Pure."""
