"""What failed, for developers: a line of the logger "hearsay" at level DEBUG.

Of a call that was refused it says which metric, which rule, and from which line; of any other error
which kind came from where, and never its text, which may hold what was recorded.  What a developer
has to mend before the application works as meant is a WARNING.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

from .errors import ExpiredMetricError, InvalidValueError, UnknownMetricError

LOGGER: Final = "hearsay"
_MISTAKES: Final = (UnknownMetricError, InvalidValueError, ExpiredMetricError)  # of the caller


def log_failure(reason: str, error: BaseException) -> bool:
    """Log that *error* was counted under *reason*; return whether anybody listens."""
    logging = sys.modules.get("logging")
    if logging is None:  # then nobody listens, and its import takes milliseconds
        return False
    logger = logging.getLogger(LOGGER)
    if not logger.isEnabledFor(logging.DEBUG):
        return False
    with suppress(Exception):  # of an application's own handler
        if isinstance(error, _MISTAKES):
            logger.debug("%s: %s; recorded at %s", reason, rule_of(error), caller())
        else:
            logger.debug("%s: %s at %s", reason, _kind(error), _place(error))
    return True


def rule_of(error: BaseException) -> str:
    """Return the rule that a call of ``record`` broke; no word of it comes from the call."""
    if isinstance(error, UnknownMetricError):
        return "the registry has no metric of that name"
    return str(error) if isinstance(error, _MISTAKES) else type(error).__name__


def caller() -> str:
    """Return module and line of the application's code that called this package."""
    frame = sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return module == __package__ or module.startswith(f"{__package__}.")


def warn(message: str) -> None:
    """Log *message*, of which nobody but a developer can make use."""
    import logging  # only who has something to mend pays for it

    with suppress(Exception):  # of an application's own handler
        logging.getLogger(LOGGER).warning(message)


def _kind(error: BaseException) -> str:
    """Return the type of *error*, and of what caused it."""
    kind, cause = type(error).__name__, error.__cause__
    if cause is None:
        return kind
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "errno", None)
    return f"{kind} from {type(cause).__name__}" + ("" if code is None else f" {code}")


def _place(error: BaseException) -> str:
    """Return the module and line that raised *error*."""
    trace = error.__traceback__
    if trace is None:
        return "an unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
