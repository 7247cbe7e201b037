"""What the collector asks of its store, and the values that cross this border.

Law of this layer: nothing here imports redis, numpy or flask; only the implementations do.
"""

from .protocols import ALONE_FROM as ALONE_FROM
from .protocols import MAX_CLAIM as MAX_CLAIM
from .protocols import ArchiveQueue as ArchiveQueue
from .protocols import Inspection as Inspection
from .protocols import Storage as Storage
from .values import Archiving as Archiving
from .values import Cell as Cell
from .values import Claimed as Claimed
from .values import Count as Count
from .values import Counters as Counters
from .values import Folded as Folded
from .values import Health as Health
from .values import Increments as Increments
from .values import Kept as Kept
from .values import Sealed as Sealed
from .values import Stored as Stored
from .values import Tallies as Tallies
