"""Say how a deployment does: what is wrong, why it matters, and what to do next."""

from .examine import examine as examine
from .state import State as State
