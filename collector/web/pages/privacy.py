"""Privacy: what each question costs a person, in ε and in plain words; a record to keep."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import shake_256
from typing import Any, Final

from flask import Blueprint
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from client_sdk import __version__
from client_sdk.core.limits import DEFAULT_CAP_LIFETIME, DEFAULT_CAP_WEEK
from client_sdk.mechanisms import DistributionMechanism, FrequencyOracle
from client_sdk.privacy.budget import (
    FORGED_WEEKS,
    WEEK,
    YEAR,
    added,
    chance,
    cost_of,
    costs_together,
    epochs_in,
    epsilon,
    guesses,
    nano_of,
    odds,
    percent,
)
from client_sdk.privacy.wording import PERIODS, how_often, what_was_sent
from client_sdk.registry.keys import dump_parameters
from client_sdk.registry.metric import Metric

from ...core.catalog import Catalog
from ...core.credentials import OPEN, VIEW
from ...estimation import isolation
from ...intake.wire import JSON
from ...planning.registry_report import plus_minus
from ..api.openapi import Operation
from ..api.query import describe
from ..auth import scope, visible
from ..services import CACHE, REVALIDATE, services
from .layout import shown

blueprint = Blueprint("privacy", __name__)

PEOPLE: Final = "/privacy/people"
_TRIES: Final = 2_000  # payloads that are tried as an example: of one of 3 answers 1 in 85 is valid


@blueprint.get("/privacy")
@scope(VIEW, page=True)
def privacy() -> ResponseReturnValue:
    """Show what each question costs the people who are asked."""
    shared = services()
    cap = nano_of(Fraction(DEFAULT_CAP_WEEK))
    costs = _together(visible())
    weeks = [question["week_nano"] for question in costs["questions"]]
    return shown(
        "privacy.html",
        is_part=visible() is not shared.catalog,
        cap=DEFAULT_CAP_WEEK,
        cap_nano=cap,
        most_nano=max(cap, costs["week_nano"], *weeks),  # the longest bar
        relay=shared.config.relay,
        issuer=bool(shared.config.issuer_keys),
        deployment=_deployment(),
        **costs,
    )


@blueprint.get("/privacy/differencing")
@scope(VIEW, page=True)
def differencing() -> ResponseReturnValue:
    """Show what subtracting two answers reveals: with exact means, server noise, and our noise.

    Nothing is drawn and no report is read: the intervals are the exact ones of ``python -m
    benchmarks differencing``, and of one report of each metric.
    """
    nano = nano_of(Fraction(isolation.EPSILON))
    rounds = [
        {
            "exact": isolation.of_exact(times),
            "server": isolation.of_server(times),
            "guesses": guesses(times * nano),
            "ours": isolation.of_answers(times),
        }
        for times in isolation.TIMES
    ]
    return shown(
        "differencing.html",
        attack=isolation,
        rounds=rounds,
        alone=isolation.of_newcomer(),
        guesses=guesses(nano),
        metrics=[_isolated(metric) for metric in visible()],
    )


@blueprint.get(PEOPLE)
@scope(OPEN, page=True)
def people() -> ResponseReturnValue:
    """Show the page for the people measured: what is asked, what is sent, what it proves.

    They have no token, and the questions are in every application that asks them: so the page is
    public, and shows nothing that was counted.
    """
    metrics = list(services().catalog)
    least = min((metric.min_reports for metric in metrics), default=0)
    config = services().config
    costs = _together(services().catalog)
    issuer = bool(config.issuer_keys)
    page = shown("people.html", least=least, relay=config.relay, issuer=issuer, **costs)
    page.headers[CACHE] = REVALIDATE
    return page


@blueprint.get("/privacy/record.json")
@scope(VIEW, page=True)
@Operation(media_type=JSON)
def record() -> ResponseReturnValue:
    """Send the record of this deployment: what is asked, at which cost, and who sees it."""
    text = json.dumps(record_of(list(visible())), ensure_ascii=False, indent=2) + "\n"
    response = Response(text, content_type=JSON)
    response.headers["Content-Disposition"] = 'attachment; filename="hearsay-record.json"'
    return response


def _together(catalog: Catalog) -> dict[str, Any]:
    """Return each metric's cost to a person, and the ε of all in any week and any year."""
    metrics = list(catalog)
    costs = added(  # each registry has a panel of its own
        costs_together(
            [m for m in metrics if registry.metrics.get(m.name) is m], registry.panel_week
        )
        for registry in catalog.registries
    )
    cap = nano_of(Fraction(DEFAULT_CAP_WEEK))
    weeks = [
        cap if registry.panel_week is None else registry.panel_week
        for registry in catalog.registries
        if any(registry.metrics.get(metric.name) is metric for metric in metrics)
    ]
    return {
        "forged": epsilon(FORGED_WEEKS * sum(weeks)),
        "life": DEFAULT_CAP_LIFETIME,
        "questions": [question_facts(metric) for metric in metrics],
        "week": epsilon(costs.week),
        "week_nano": costs.week,
        "year": epsilon(costs.year),
        "year_days": YEAR,
    }


def question_facts(metric: Metric) -> dict[str, Any]:
    """Return what *metric* costs a person, in words."""
    delta = metric.mechanism.delta
    cost = cost_of(metric)
    return {
        "metric": metric,
        "often": how_often(metric.every),
        "window": PERIODS[metric.every],
        **_amounts(metric),
        "week_nano": cost.week,
        "delta": chance(delta) if delta else "",
        "odds": odds(metric.most_nano, delta),
        "guesses": guesses(metric.most_nano, delta),
        "week_guesses": guesses(cost.week, epochs_in(metric.every, WEEK) * delta),
        "life_guesses": None if cost.life is None else guesses(cost.life, delta),
        "chances": _chances(metric),
        "example": _example_of(metric),
    }


def record_of(metrics: list[Metric]) -> dict[str, Any]:
    """Return the record: facts of JSON types, ε rounded up."""
    return {
        "form": 1,
        **_deployment(),
        "privacy": "local differential privacy: randomized on the device, before it is sent",
        "kept": [
            "tallies: sums over many reports, by metric, period and public segment",
            "reports until they are counted; longer only where an archive is set",
            "random ids of uploads until they expire, so that none is counted twice",
            "how many uploads were accepted and refused in each hour of two days",
        ],
        "not_kept": [
            "addresses",
            "names of devices or people",
            "true values",
            "times of single uploads, but how many came in each hour of two days",
        ],
        "metrics": [_entry(metric) for metric in metrics],
    }


def _deployment() -> dict[str, Any]:
    """Return what holds of all metrics of this deployment, of JSON types."""
    config = services().config
    now = datetime.fromtimestamp(services().clock(), UTC)
    return {
        "made_at": now.isoformat(timespec="seconds"),
        "made_by": f"hearsay {__version__}",
        "applications": sorted(
            {registry.app for registry in visible().registries if registry.metrics}
        ),
        "profile": config.profile,
        "relay_operator": config.relay.operator or None,
        "archive": bool(config.archive),
        "archive_days": config.archive_days if config.archive else None,
    }


def _entry(metric: Metric) -> dict[str, Any]:
    most, delta = metric.most_nano, metric.mechanism.delta
    return {
        **describe(metric),
        "owner": metric.owner,
        "parameters": dump_parameters(metric.mechanism.parameters),
        "epsilon": _amounts(metric),
        "odds_of_a_report": odds(most, delta),
        "best_guess_of_100": guesses(most, delta),
        "precision_with_expected_devices": plus_minus(metric),
        "answers_need_reports": metric.min_reports,
    }


def _isolated(metric: Metric) -> dict[str, Any]:
    """Return what one report of *metric* reveals of a person isolated by two answers."""
    domain, mechanism = metric.domain, metric.mechanism
    interval = ""
    if domain.grid and not isinstance(mechanism, DistributionMechanism):
        reach = isolation.of_report(mechanism) * domain.extent
        interval = f"± {reach:,.3g} {domain.unit}, of a range of {domain.extent:,g}"
    return {
        "metric": metric,
        "report": epsilon(metric.most_nano),
        "interval": interval,
        "guesses": guesses(metric.most_nano, mechanism.delta),
        "hundred": guesses(isolation.TIMES[1] * metric.most_nano, mechanism.delta),
    }


def _amounts(metric: Metric) -> dict[str, str | None]:
    """Return ε of periods; None for life if reports add up until the device's cap."""
    cost = cost_of(metric)
    return {
        "report": epsilon(metric.most_nano),
        "week": epsilon(cost.week),
        "year": epsilon(cost.year),
        "life": None if cost.life is None else epsilon(cost.life),
    }


def _example_of(metric: Metric) -> str:
    """Return in words what a report can say, the same at each visit; "" if none is found.

    No value is behind it: it is the first valid payload that the digest of the definition spells.
    """
    mechanism = metric.mechanism
    for attempt in range(_TRIES):
        payload = shake_256(b"%s %d" % (metric.digest, attempt)).digest(mechanism.payload_size)
        if mechanism.reason(payload) is None:
            return what_was_sent(metric, payload, is_brief=True)
    return ""


def _chances(metric: Metric) -> tuple[str, str] | None:
    """Return both chances if a report supports items; otherwise nothing."""
    mechanism = metric.mechanism
    if not isinstance(mechanism, FrequencyOracle) or not metric.domain.labels:
        return None
    p, q = mechanism.channel.p, mechanism.channel.q
    return percent(p, up=True), percent(q, up=False)
