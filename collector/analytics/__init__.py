"""Queries over tallies.  Pure: no store, no clock; integers in, rows with intervals out."""

from .answer import Answer as Answer
from .answer import Row as Row
from .answer import answer as answer
from .answer import label_truth as label_truth
