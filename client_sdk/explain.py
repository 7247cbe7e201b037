"""What one metric asks, sends and costs, in plain words for a privacy screen or a support page."""

from __future__ import annotations

from .caps import Caps
from .plain_words import why_deniable
from .privacy.budget import YEAR, epsilon, guesses_in_words, most, nano_of, odds, reports
from .privacy.wording import counted, how_often
from .registry.metric import Metric


def explain(metric: Metric, caps: Caps) -> str:
    """Return an explanation of *metric* within the application's *caps*, a paragraph a line."""
    mechanism = metric.mechanism
    size = counted(mechanism.payload_size, "byte")
    lines = [
        f"{metric.title} ({metric.name})",
        f"What is asked: {metric.question} The answer is {metric.domain.form}.",
        f"What is sent: {how_often(metric.every)}, {size} made from"
        f" {_source(metric)} and from chance by {metric.mechanism_name}, with the date of the"
        f" period{_segments(metric)} and nothing that names you or this device.",
        f"What it proves: nothing for certain. {why_deniable(metric)} Someone who sees the"
        " report and guesses between two answers is right at most"
        f" {guesses_in_words(mechanism.spent_nano, mechanism.delta)} times in 100; a coin is right"
        " 50 times.",
        *_repeats(metric),
        _price(metric, caps),
    ]
    return "\n".join(lines)


def _price(metric: Metric, caps: Caps) -> str:
    if not reports(metric, caps):
        return "What it costs: nothing. A report would pass this application's caps: none is sent."
    cost = most([metric], caps)
    return (
        f"What it costs: ε {epsilon(metric.most_nano)} a report (odds shift by at most"
        f" {odds(metric.most_nano, metric.mechanism.delta)}), ε {epsilon(cost.week)} in any"
        f" seven days, ε {epsilon(cost.year)} in any {YEAR} days and ε {epsilon(cost.life)}"
        f" for life. The caps of this application, over all its"
        f" questions together, are ε {epsilon(caps.week)} in seven days and"
        f" ε {epsilon(caps.lifetime)} for life."
    )


def _repeats(metric: Metric) -> list[str]:
    policy = metric.policy
    if policy is None:
        return []
    bound = policy.spent_value
    price = ""
    if bound is not None:
        price = f" All reports of one answer cost at most ε {epsilon(nano_of(bound))} together."
    return [f"What repeats: {policy.leak}{price}"]


def _source(metric: Metric) -> str:
    """Return of what a report is made."""
    aggregation = metric.aggregation
    return "the answer" if aggregation is None else f"all answers of a period ({aggregation})"


def _segments(metric: Metric) -> str:
    return "".join(f", your {dimension}" for dimension in sorted(metric.segments))
