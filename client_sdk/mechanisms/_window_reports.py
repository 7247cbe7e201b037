"""Mean mechanisms whose symbols are the outputs of one window channel."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from ._moments import Moments
from ._symbols import SymbolReports
from ._window import Window


class WindowReports(SymbolReports):
    """A mechanism that rounds a position to a step and sends it through ``window``."""

    @property
    @abstractmethod
    def window(self) -> Window:
        """The channel from steps to symbols."""

    @property
    def payload_count(self) -> int:
        """The outputs of the channel."""
        return self.window.outputs

    @property
    def likelihood_ratio(self) -> Fraction:
        """That of the channel."""
        return self.window.likelihood_ratio

    @property
    def moments(self) -> Moments:
        """Those of the channel."""
        return self.window.moments

    def position(self, symbol: int) -> Fraction:
        """Return the position of an output."""
        return self.window.position(symbol)
