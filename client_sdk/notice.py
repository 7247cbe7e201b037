"""A text with which an application can ask for consent: what is asked, and how much it gives away.

The numbers are upper bounds from the registry and the caps.  Only the frame is ours; the titles and
questions are the application's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from .caps import Caps
from .privacy.budget import YEAR, chance, epsilon, guesses_in_words, most, reports, shift
from .registry.metric import Metric
from .registry.registry import Registry

_EVERY = {"1h": "every hour", "1d": "every day", "7d": "every week", "once": "once"}


def notice(registry: Registry, caps: Caps) -> str:
    """Return the notice for all metrics of *registry* under the application's *caps*."""
    metrics = [metric for metric in registry if reports(metric, caps)]
    if not metrics:
        return f"{registry.app} asks nothing: no report is within its own privacy caps.\n"
    cost = most(metrics, caps)
    questions = "\n".join(
        f"- {metric.title} ({_EVERY[metric.every]}): {metric.question}" for metric in metrics
    )
    return f"""\
{registry.app} would like to learn how it is used, without learning what you do.

It asks:
{questions}

Before an answer leaves this device, it is changed by chance. What is sent may be true or not:
nobody can tell, {registry.app} and its makers included. Only over thousands of people does
chance cancel out. {_about_segments(registry)}

How much this gives away: a whole day of reports costs at most ε {epsilon(cost.day)}. In plain
words: of two stories about you, a day's reports make neither look more than
{shift(cost.day)} times as likely as before. Somebody who guesses which of the two is true
would be right at most {guesses_in_words(cost.day)} times in 100, and 50 times without any
report.
In any seven days it is at most ε {epsilon(cost.week)}, in any {YEAR} days at most
ε {epsilon(cost.year)}, and for as long as you use {registry.app} at most
ε {epsilon(cost.life)}; then it stops by itself.{_about_delta(metrics)}

You can say no, and change your mind at any time. A no deletes what waits to be sent.
DO_NOT_TRACK=1 in the environment is always obeyed.
"""


def _about_segments(registry: Registry) -> str:
    if not registry.segments:
        return "A report has a date, and nothing that names you or this device."
    named = " and ".join(sorted(registry.segments))
    return f"A report has a date and your {named}, and nothing that names you or this device."


def _about_delta(metrics: Sequence[Metric]) -> str:
    delta = sum((metric.mechanism.delta for metric in metrics), Fraction())
    if not delta:
        return ""
    return (
        f"\nWith a chance of at most {chance(delta)} for a round of reports it is more than that."
    )
