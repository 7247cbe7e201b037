"""Estimators written a second time, by other means, for the vectors to agree with."""
