"""Every error the SDK raises.

HearsayError
├── InvalidParameterError (ValueError)    a parameter breaks a rule; no user's value is shown
├── InvalidValueError (ValueError)        a recorded value is outside its domain; it is not shown
├── InvalidTallyError (ValueError)        a tally cannot have come from this mechanism
├── RegistryError (ValueError)            a registry file is wrong; lists every problem
├── UnknownMetricError (KeyError)         no metric of that name or digest
├── UnknownMechanismError (KeyError)      no mechanism of that name
├── IncompleteInstallationError (ImportError)  modules of this package are missing
├── ConsentError                          the user has not agreed; nothing was recorded
│   ├── OptedOutError                     environment, policy or user setting say no
│   └── AutomatedError                    a machine runs the application; nothing was recorded
├── ExpiredMetricError                    the metric's last day has passed; nothing was recorded
├── BudgetExhaustedError                  a charge would pass a cap; nothing was charged
├── NotInPanelError                       this device does not report of this metric now
├── AlreadyReportedError                  this metric has its report for this epoch
├── EntropyError (OSError)                the operating system gave no randomness; nothing was drawn
├── StoreError (OSError)                  the device database cannot be used
│   └── UnusableFolderError (OSError)     of another version or program, or without locks
└── TransportError (OSError)              the collector could not be reached
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; a program that ends at once loads this

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONG = 2_048  # bits of an integer of which Python may write no decimal digits


class HearsayError(Exception):
    """Root of the errors of client_sdk."""


class InvalidParameterError(HearsayError, ValueError):
    """A parameter breaks a rule.  Reads ``name=value: rule``."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        """Keep the parts as data; *value* is configuration, never a user's value."""
        self.name, self.value, self.rule = name, value, rule
        is_long = isinstance(value, int) and value.bit_length() > _LONG
        super().__init__(f"{name}={'...' if is_long else value}: {rule}")


class InvalidValueError(HearsayError, ValueError):
    """A recorded value is outside its domain.  The value itself is never part of the error."""

    def __init__(self, what: str, rule: str) -> None:
        """Name the metric or mechanism as *what* and the *rule* that the value breaks."""
        self.what, self.rule = what, rule
        super().__init__(f"{what}: {rule}")


class InvalidTallyError(HearsayError, ValueError):
    """A tally has another length than the mechanism's, or an impossible entry."""


class RegistryError(HearsayError, ValueError):
    """A registry is wrong.  ``problems`` lists every fault as ``place: rule``."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep all *problems*, so that a file can be fixed in one go."""
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question behind *name* for the one of *known* that is written alike; "" if none."""
    from difflib import get_close_matches  # only who mistypes waits for it

    return "".join(f" (did you mean {like}?)" for like in get_close_matches(name, known, 1))


class _UnknownNameError(HearsayError, KeyError):
    """A name that is not known.  Unlike KeyError it prints its text plainly."""

    kind = "name"

    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(name)

    def __str__(self) -> str:
        known = f"; known: {', '.join(self.known)}" if self.known else ""
        return f"{self.kind}={self.name}: is not known{nearest(self.name, self.known)}{known}"


class UnknownMetricError(_UnknownNameError):
    """The registry has no such metric."""

    kind = "metric"


class UnknownMechanismError(_UnknownNameError):
    """The folder ``client_sdk/mechanisms`` has no such file."""

    kind = "mechanism"


class IncompleteInstallationError(HearsayError, ImportError):
    """Modules of this package are missing, as in a bundle that left them out."""


class ConsentError(HearsayError):
    """The user has not agreed.  Nothing was recorded."""


class OptedOutError(ConsentError):
    """The environment, a policy of the machine or the user's setting says no to all telemetry."""


class AutomatedError(ConsentError):
    """A machine runs the application and no person is present.  Nothing was recorded."""

    def __init__(self, sign: str) -> None:
        """Name the *sign* of it: a variable, never its value, or what the machine lacks."""
        self.sign = sign
        rule = "no person is present, so nothing is recorded; if one is, set HEARSAY_TELEMETRY=1"
        super().__init__(f"automation={sign}: {rule}")


class ExpiredMetricError(HearsayError):
    """The last day of the metric has passed.  Nothing was recorded."""

    def __init__(self, what: str, expires: object) -> None:
        """Name the metric as *what*, and the last day that it had."""
        self.what = what
        super().__init__(f"metrics.{what}.expires={expires}: has passed")


class BudgetExhaustedError(HearsayError):
    """A charge would pass a cap.  Nothing was charged and nothing was drawn."""


class NotInPanelError(HearsayError):
    """The panel of this device and period leaves the metric out; nothing was charged."""


class AlreadyReportedError(HearsayError):
    """The metric already has its one report for this epoch."""


class EntropyError(HearsayError, OSError):
    """The operating system gave no randomness, so no report was made: there is no fallback."""


class StoreError(HearsayError, OSError):
    """The device database cannot be opened, read or written."""


class UnusableFolderError(StoreError):
    """The data_dir cannot hold the ledger of this version, which a developer must hear of."""


class TransportError(HearsayError, OSError):
    """No answer from the collector: whether the upload arrived is not known, unless *unseen*."""

    def __init__(self, text: str, *, unseen: bool = False) -> None:
        """Say what failed.  *unseen*: no byte of the upload left for certain."""
        self.unseen = unseen
        super().__init__(text)
