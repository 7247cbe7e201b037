"""What people read of their telemetry: the notice that asks, each metric, and each report.

The notice and the explanation of a metric say what is asked, what is sent and how much it gives
away.  Their numbers are upper bounds from the registry and the caps.  Only the frame is ours; the
titles and questions are the application's own.

Of a report they say what it tells and why it can be denied.  Payloads are perturbed: nothing here
knows a true value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ..core.typing import Final
from ..mechanisms import KeyValueMechanism, MeanMechanism, SupportReports
from ..registry.contract import Registry
from ..registry.domain import Domain, NumberGrid
from ..registry.metric import DIMENSION, Metric
from .budget import (
    FORGED_WEEKS,
    YEAR,
    chance,
    epsilon,
    forged_week,
    guesses_in_words,
    most,
    nano_of,
    odds,
    percent,
    reports,
    shift,
)
from .caps import Caps

ASCII: Final = {
    "ε": "epsilon",
    "δ": "delta",
    "±": "+-",
    "–": "-",
    "−": "-",
    "…": "...",
    "∞": "infinite",
}
PERIODS: Final = {  # by ``every``
    "1h": "hour",
    "1d": "day",
    "7d": "week",
    "28d": "four weeks",
    "once": "lifetime",
}

_MAX_NAMED: Final = 4  # labels; more would not be read
_SEEN: Final = (
    "The server that collects reports sees your internet address when one comes, as any server"
    " does.",
    "It keeps the report without the address.",
)
_RELAYED: Final = (
    "Reports travel through {relay}, which sees your internet address and cannot read them.",
    "The server that collects them can read them, and does not see your address.",
)
_ISSUED: Final = (
    "The server {issuer} gives out permits for reports; it sees your internet address and no"
    " report."
)

_OF_AUTOMATION: Final = "whether a machine runs it by itself"
_COLUMNS: Final = 78  # of a terminal of 80
_EVERY = {
    "1h": "every hour",
    "1d": "every day",
    "7d": "every week",
    "28d": "every four weeks",
    "once": "once",
}


def notice(registry: Registry, caps: Caps) -> str:
    """Return the notice for all metrics of *registry* under the application's *caps*."""
    if registry.panel_week is not None:  # the ledger enforces it as a cap
        caps = caps.within(min(registry.panel_week, caps.week))
    metrics = [metric for metric in registry if reports(metric, caps)]
    if not metrics:
        return f"{registry.app} asks nothing: no report is within its own privacy caps.\n"
    cost = most(metrics, caps)
    questions = "\n".join(
        f"- {metric.title} ({_EVERY[metric.every]}): {metric.question}" for metric in metrics
    )
    return _wrapped(f"""\
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
ε {epsilon(cost.life)}; then it stops by itself.{_exceptions(metrics, caps)}

You can say no, and change your mind at any time. A no deletes what waits to be sent.
A no of your system or browser, such as DO_NOT_TRACK=1, is always obeyed.
""")


def _wrapped(text: str) -> str:
    """Return *text* in lines that a terminal does not break, paragraph by paragraph."""
    from textwrap import fill  # it costs a device that only reports nothing

    parts = text.strip().split("\n\n")
    return "\n\n".join(part if "\n- " in part else fill(part, _COLUMNS) for part in parts) + "\n"


def who_sees_the_address(relay: str | None = None, issuer: str | None = None) -> list[str]:
    """Return who sees the address of a device that sends by these URLs, in sentences.

    A registry does not know that, so its compiled texts say nothing of it: a device adds this.
    """
    relay_host, issuer_host = (
        (url or "").partition("://")[2].partition("/")[0] for url in (relay, issuer)
    )
    texts = [*(_SEEN if relay is None else _RELAYED), *([] if issuer is None else [_ISSUED])]
    return [text.format(relay=relay_host, issuer=issuer_host) for text in texts]


def with_address(text: str, relay: str | None = None, issuer: str | None = None) -> str:
    """Return the notice *text* with who sees the address of a device that sends by these URLs."""
    return "\n".join((text, *who_sees_the_address(relay, issuer), ""))


def _about_segments(registry: Registry) -> str:
    if not registry.segments:
        return "A report has a date, and nothing that names you or this device."
    named = ", ".join(_in_words(dimension) for dimension in sorted(registry.segments))
    return f"A report has a date, {named}, and nothing that names you or this device."


def _exceptions(metrics: Sequence[Metric], caps: Caps) -> str:
    """Return when more than the numbers above is given away."""
    return _about_clocks(metrics, caps) + _about_a_new_yes(metrics, caps) + _about_delta(metrics)


def _about_clocks(metrics: Sequence[Metric], caps: Caps) -> str:
    return f"""
If somebody sets the clock of this device and restarts it over and over, any seven days can
cost at most ε {epsilon(forged_week(metrics, caps))}. What is for life stays the same."""


def _about_a_new_yes(metrics: Sequence[Metric], caps: Caps) -> str:
    if all(metric.policy is None for metric in metrics):
        return ""
    return f"""
A no also makes this device forget the answers that it repeats, and a new yes begins anew:
up to ε {epsilon(caps.week)} in any seven days and ε {epsilon(caps.lifetime)} for life."""


def _about_delta(metrics: Sequence[Metric]) -> str:
    delta = sum((metric.mechanism.delta for metric in metrics), Fraction())
    if not delta:
        return ""
    return (
        f"\nWith a chance of at most {chance(delta)} for a round of reports it is more than that."
    )


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
        f" ε {epsilon(caps.lifetime)} for life. If somebody sets the clock of this device and"
        f" restarts it over and over, any seven days can cost at most {FORGED_WEEKS} times the cap."
    )


def _repeats(metric: Metric) -> list[str]:
    policy = metric.policy
    if policy is None:
        return []
    price = f"All reports of one answer cost at most ε {epsilon(nano_of(policy.spent_value))}"
    end = "together. After a no it is forgotten, and begins anew."
    return [f"What repeats: {policy.leak} {price} {end}"]


def _source(metric: Metric) -> str:
    """Return of what a report is made."""
    aggregation = metric.aggregation
    return "the answer" if aggregation is None else f"all answers of a period ({aggregation})"


def _segments(metric: Metric) -> str:
    return "".join(f", {_in_words(dimension)}" for dimension in sorted(metric.segments))


def _in_words(dimension: str) -> str:
    return _OF_AUTOMATION if dimension == DIMENSION else f"your {dimension}"


def what_was_sent(metric: Metric, payload: bytes, *, is_brief: bool = False) -> str:
    """Return what *payload* tells the collector, in words.

    Args: is_brief: of several answers one has its name in the text, and odds are left out.
    """
    mechanism, domain = metric.mechanism, metric.domain
    if len(payload) != mechanism.payload_size or mechanism.reason(payload) is not None:
        return f"the bytes {payload.hex()}, which mean nothing here"
    if isinstance(mechanism, KeyValueMechanism) and domain.numbers:
        return _pairs(mechanism.supports(payload), domain.labels, domain.numbers)
    if isinstance(mechanism, SupportReports) and domain.labels:
        return _items(list(mechanism.supports(payload)), domain, 1 if is_brief else _MAX_NAMED)
    if isinstance(mechanism, MeanMechanism) and (grid := domain.grid):
        total = grid.minimum + grid.step * mechanism.decode(payload)
        return f"{_rounded(total)} {grid.unit}, which is the value and noise together"
    number = f"the number {int.from_bytes(payload, 'big')}, drawn by chance"
    shifted = odds(mechanism.spent_nano, mechanism.delta)
    return number if is_brief else f"{number}: it shifts the odds of two values by {shifted}"


def _items(items: Sequence[int], domain: Domain, most_named: int) -> str:
    if not items:
        return f"none of the {domain.size} answers"
    named = _joined([f'"{domain.item_in_words(item)}"' for item in items], most_named)
    return named if len(items) == 1 else f"{len(items)} of {domain.size} answers: {named}"


def _pairs(supports: Iterable[int], keys: Sequence[str], numbers: NumberGrid) -> str:
    """Return the keys with the end of the range that each was rounded to."""
    ends = numbers.maximum, numbers.minimum  # the cells of plus come first
    pairs = [
        f'"{keys[cell % len(keys)]}" with {_rounded(ends[cell // len(keys)])} {numbers.unit}'
        for cell in supports
    ]
    return _joined(pairs) if pairs else f"none of the {len(keys)} keys"


def _joined(texts: Sequence[str], most_named: int = _MAX_NAMED) -> str:
    rest = len(texts) - most_named
    return ", ".join(texts[:most_named]) + (f" and {rest} more" if rest > 0 else "")


def _rounded(number: Fraction) -> str:
    return f"{float(number):,.6g}"


def why_deniable(metric: Metric) -> str:
    """Return how little one report of *metric* says about what was true."""
    mechanism = metric.mechanism
    said = (
        f"{_chances(metric)}It shifts nobody's odds by more than"
        f" {odds(mechanism.spent_nano, mechanism.delta)}."
    )
    if metric.policy is None:
        return said
    together = odds(nano_of(metric.policy.spent_value))
    return f"{said} All reports of one answer together: by no more than {together}."


def _chances(metric: Metric) -> str:
    """Return how often a report speaks for what is true, and for what is not, if that is simple."""
    mechanism, domain = metric.mechanism, metric.domain
    if not isinstance(mechanism, SupportReports) or domain.numbers or not domain.labels:
        return "Any value could have given this report. "
    p, q = mechanism.channel.p, mechanism.channel.q
    return (
        f"A report points to the true answer with a chance of at most {percent(p, up=True)}, and to"
        f" each other answer with at least {percent(q, up=False)}. "
    )


def a_period(every: str) -> str:
    """Return how often epochs of length *every* come: "a week"."""
    article = {"1h": "an", "28d": "every"}.get(every, "a")
    return f"{article} {PERIODS[every]}"


def how_often(every: str) -> str:
    """Return how often a metric is sent that is asked *every* so long: "at most once a week"."""
    return every if every == "once" else f"at most once {a_period(every)}"


def counted(count: int, noun: str) -> str:
    """Return *count* things: "1 report", "2,000 reports"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def in_ascii(text: str) -> str:
    """Return *text* in letters that every terminal and file can hold."""
    for letter, words in ASCII.items():
        text = text.replace(letter, words)
    return text.encode("ascii", "replace").decode("ascii")


def printable(text: str, encoding: str | None) -> str:
    """Return *text*, or where *encoding* cannot hold it the same in ASCII."""
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return in_ascii(text)
    return text
