"""Say how a deployment does: what is wrong, why it matters, and what to do next."""

from .checkup import examine as examine
from .findings import State as State
