"""From one tally to one number and its interval."""
