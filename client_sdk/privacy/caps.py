"""The caps: the most that an application ever spends on a person."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError
from ..core.limits import (
    DEFAULT_CAP_DELTA,
    DEFAULT_CAP_LIFETIME,
    DEFAULT_CAP_METRIC_WEEK,
    DEFAULT_CAP_REPORT,
    DEFAULT_CAP_WEEK,
)
from ..core.typing import Final

NANO_DECIMALS: Final = 9  # of epsilon
PICO_DECIMALS: Final = 12  # of delta
WEEK: Final = 7  # days
_EPSILONS: Final = ("report", "metric_week", "week", "lifetime")


@dataclass(frozen=True, init=False, repr=False)
class Caps:
    """The most epsilon and delta this application ever spends on a person.

    Compiled into the application: no registry and no answer of a server can raise them.  A week is
    any seven days of the person's life, that reports are about, whenever these are made.
    """

    report: int  # nano-epsilon of one report
    metric_week: int  # nano-epsilon of any seven days, of one metric
    week: int  # nano-epsilon of any seven days, of all metrics together
    lifetime: int  # nano-epsilon of the ledger's life, of all metrics together
    delta: int  # whole 1e-12 of the ledger's life, of all metrics together; their sum

    def __init__(
        self,
        report: str = DEFAULT_CAP_REPORT,
        metric_week: str = DEFAULT_CAP_METRIC_WEEK,
        week: str = DEFAULT_CAP_WEEK,
        lifetime: str = DEFAULT_CAP_LIFETIME,
        delta: str = DEFAULT_CAP_DELTA,
    ) -> None:
        """Take decimals in quotes: epsilon in nats, and *delta*, where "0" allows none.

        Raises: InvalidParameterError: not a decimal in quotes, too many decimals, or an epsilon
                of 0.
        """
        for name, cap in zip(_EPSILONS, (report, metric_week, week, lifetime), strict=True):
            object.__setattr__(self, name, _whole(f"caps.{name}", cap, NANO_DECIMALS, least=1))
        object.__setattr__(self, "delta", _whole("caps.delta", delta, PICO_DECIMALS, least=0))

    @classmethod
    def of(cls, caps: object) -> Caps:
        """Return *caps*, which must be Caps.  Raises InvalidParameterError: anything else."""
        if not isinstance(caps, cls):
            rule = 'must be a Caps, such as Caps(week="4")'
            raise InvalidParameterError("caps", type(caps).__name__, rule)
        return caps

    def within(self, panel_week: int | None) -> Caps:
        """Return these caps with the week of a panel, in nano-epsilon; None: there is no panel.

        The ledger enforces it as it does a cap: a secret that is drawn anew, a clock that is set
        and a registry that was updated draw again in one week, and all draws count together.
        Raises: InvalidParameterError: the panel's week is above that of the caps.
        """
        if panel_week is None:
            return self
        if panel_week > self.week:
            rule = f"must be at most caps.week={epsilon_text(self.week)}"
            raise InvalidParameterError("panel.week", epsilon_text(panel_week), rule)
        return Caps(**{**self.decimals(), "week": epsilon_text(panel_week)})

    def below(self, nano: int) -> str | None:
        """Return the name of the first cap that one report of *nano*-epsilon passes, or None."""
        return next((name for name in _EPSILONS if getattr(self, name) < nano), None)

    def decimals(self) -> dict[str, str]:
        """Return the arguments that make these caps."""
        amounts = {name: epsilon_text(getattr(self, name)) for name in _EPSILONS}
        amounts["delta"] = _decimal(self.delta, PICO_DECIMALS)
        return amounts

    def __repr__(self) -> str:
        """Return the call that makes these caps, in epsilon."""
        return f"Caps({', '.join(f'{name}={cap!r}' for name, cap in self.decimals().items())})"


def dearest_week(
    costs: Iterable[tuple[bytes, int, int, int]], days: tuple[int, int], today: int
) -> int:
    """Return what the dearest seven days cost that hold any of *days*, the first to the last.

    Nothing is charged for a day to come, so of the weeks that hold today, or end later, the one
    that ends today is the dearest.

    Args: costs: of (digest, first day, last day, nano-epsilon) each.
    """
    first_day, last_day = days
    ends = range(first_day, min(last_day + WEEK - 1, today) + 1)
    return max(
        sum(nano for _, first, last, nano in costs if first <= end and last > end - WEEK)
        for end in ends
    )


def epsilon_text(nano: int) -> str:
    """Return *nano*-epsilon in epsilon, as registries and caps write it."""
    return _decimal(nano, NANO_DECIMALS)


def _decimal(units: int, decimals: int) -> str:
    """Return whole *units* of the last of *decimals* as a decimal, without passing a float."""
    whole, rest = divmod(units, 10**decimals)
    return f"{whole}.{rest:0{decimals}}".rstrip("0").rstrip(".")


def _whole(name: str, cap: object, decimals: int, least: int) -> int:
    """Return the decimal *cap* in whole units of its last decimal, without passing a float."""
    rule = (
        f'must be a {"positive " if least else ""}decimal in quotes, such as "8.5",'
        f" at most 999999, with at most {decimals} decimals"
    )
    whole, point, fraction = cap.partition(".") if isinstance(cap, str) else ("", "", "")
    if not _is_digits(whole, 6) or not (_is_digits(fraction, decimals) or not point):
        raise InvalidParameterError(name, cap, rule)
    units = int(whole + fraction.ljust(decimals, "0"))
    if units < least:
        raise InvalidParameterError(name, cap, rule)
    return units


def _is_digits(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= most


DEFAULT_CAPS: Final = Caps()
