"""How close estimates come, and how often intervals hold the truth."""
