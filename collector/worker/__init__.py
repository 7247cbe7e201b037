"""What a worker does: fold uploads into tallies, archive, prune, check."""
