"""Questions that typed words mean, found by the words of metrics, verbs, dimensions and times."""

from .search import MOST_CHARACTERS as MOST_CHARACTERS
from .search import Match as Match
from .search import changed_range as changed_range
from .search import find as find
