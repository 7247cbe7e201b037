"""Questions: from what was asked to slices of tallies, to a verb, to rows.

request -> plan -> reading -> run, ``reader`` for what several questions share, and ``cache`` for
what cannot change any more.
"""

from .plan import Plan as Plan
from .plan import earlier as earlier
from .plan import own_question as own_question
from .plan import plan as plan
from .reader import Reader as Reader
from .reading import without_pruned as without_pruned
from .request import Query as Query
from .request import question as question
from .request import read as read
from .run import Answer as Answer
from .run import answer as answer
from .run import run as run
