"""Tables of the pages that are computed, not measured."""
