"""What each verb answers of stated populations, and what it refuses: tables of questions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.dataclass import replace as changed
from client_sdk.registry.metric import Metric
from client_sdk.registry.types.numbers import NumberDomain
from collector.analytics.rows import AGAINST, ALL, RAW, REST
from collector.analytics.verb import OTHER, Slice, load
from collector.analytics.verbs.segments import POOLED
from collector.core.errors import QueryError
from collector.core.remarks import WORDS, Code, remark
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import AGE, PAGE, SHOWN, exact
from tests.support.crowds.scenarios import Part, Scenario, check
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RECORD,
    RETENTION,
    SET,
    STRING,
    VECTOR,
)
from tests.support.enumeration.populations import WAVE, category, metric_of, reported, slice_of

FEW: Final = Part("not enough reports")
WEEKS: Final = [f"2026-0{i + 1}" for i in range(9)]
DAYS: Final = [f"2026-03-{i + 1:02}" for i in range(16)]


def along(name: str, *parts: tuple[str, float, int]) -> list[Slice]:
    """Return a slice a value of the dimension *name*, with its share and its reports."""
    return [exact({name: value}, share, n) for value, share, n in parts]


def over(labels: list[str], *shares: float, n: int = 4_000, metric: Metric = SHOWN) -> list[Slice]:
    """Return a slice a stretch of time."""
    return [
        exact({"time": label}, share, n, i, metric=metric)
        for i, (label, share) in enumerate(zip(labels, shares, strict=False))
    ]


def ages(name: str, *parts: tuple[str, int]) -> list[Slice]:
    """Return slices of 600 devices each, of these ages on average."""
    return [
        Slice(AGE, {name: value}, 600, np.array([600 * mean, 600 * mean**2 + 10**6, 0]), (i,))
        for i, (value, mean) in enumerate(parts)
    ]


def tallied(metric: Metric, *tally: int, n: int = 0, **dimensions: str) -> Slice:
    """Return the slice of *n* reports, or of as many as the tally has."""
    return Slice(metric, dimensions, n or sum(tally), np.array(tally), (0,))


def grr(fields: dict[str, str], **changes: str | None) -> Metric:
    return metric_of(fields, mechanism='"grr"', **changes)


BELL: Final = [round(1_600 * 0.5 ** ((i - 17) ** 2 / 35)) for i in range(48)]
PLATFORMS: Final = along(
    "platform", ("linux", 0.5, 4_000), ("mac", 0.4, 3_000), ("win", 0.4, 1_000)
)
SMALL: Final = exact({"platform": "win"}, 1.0, 60)
VERSIONS: Final = [
    exact({"time": time, "version": version}, share, n, i)
    for i, time, version, share, n in (
        (0, WEEKS[0], "1", 0.2, 900),
        (0, WEEKS[0], "2", 0.4, 300),
        (1, WEEKS[1], "1", 0.2, 250),
        (1, WEEKS[1], "2", 0.4, 750),
    )
]
THIRD_VERSION: Final = exact({"time": WEEKS[0], "version": "3"}, 0.5, 60)
TWO_PLATFORMS: Final = [
    exact({"time": time, "platform": name}, share, 4_000, i)
    for i, (time, share) in enumerate([(WEEKS[0], 0.2), (WEEKS[1], 0.3)])
    for name, share in (("linux", share), ("mac", 2 * share))
]
COUNTED: Final = [
    exact({"time": DAYS[day], "platform": platform}, 0.2, 100 * (day + 1), day)
    for day in (0, 1)
    for platform in ("linux", "mac")
]
TALL: Final = (600, 500, 400, 300, 150, 50, 0, 0, 0, 0, 0, 0)
ITEMS: Final = tuple(f"v{i}" for i in range(12))
KEYS: Final = ("video", "music", "chess")
PAGES: Final = [
    tallied(PAGE, 300, 200, 100, platform="linux"),
    tallied(PAGE, 200, 200, 200, platform="mac"),
]
PAIRS: Final = Slice(
    metric_of(KEY_VALUE, mechanism='"pckv_grr"'),
    {},
    3_000,
    np.array([900, 600, 200, 200, 300, 200]),
    (0,),
)
UNEVEN_DAYS: Final = [
    exact({"time": DAYS[i]}, 0.5, n, i) for i, n in enumerate([500, 60, 500, 500])
]
RISING: Final = [40 + 3 * i for i in range(48)]
MIDDLE: Final = [900 if 10 <= i <= 20 else 90 for i in range(48)]
BITS: Final = category("a", "b", "c", mechanism="dbitflip")
RETAINED: Final = grr(RETENTION, periods='["w0", "w1", "w2"]')
SIZES: Final = slice_of(category("none", "some", "many", "all"), (100, 200, 300, 400))
TABLE: Final = (2_000, 1_500, 500, 500, 1_500, 4_000)  # sex by income
CELLS: Final = [0, 0, 0, 0, 500, 0, 3_000, 1_500]
SHARP: Final = [0] * 10 + [50_000] + [0] * 40

assert isinstance(AGE.domain, NumberDomain)
COLD: Final = changed(AGE, domain=changed(AGE.domain, minimum=Fraction(-10)))
ARMS: Final = {"dimension": "arm", "control": "old"}
HALVES: Final = [
    exact({}, share, 4_000, metric=changed(SHOWN, name=name))
    for name, share in (("bought", 0.3), ("saw", 0.6))
]

SCENARIOS: Final = {
    "actives: an epoch has exactly as many devices as reports": Scenario(
        "actives",
        over(DAYS, 0.2, 0.2, n=250),
        {},
        {
            "value": [250, 250, None],
            "ci_low": [250, 250, 250],
            "ci_high": [250, 250, 500],
            "unit": "devices",
            "n": [250, 250, 500],
            "time": [*DAYS[:2], ALL],
            "reason": [None, None, Part("no more than bounds is known")],
            "note": [
                *[Part("counted in the clear; 2.5 % of the 10,000 expected")] * 2,
                Part("at least 2.5 % of the 10,000 expected"),
            ],
        },
        {"expected_devices": 10_000},
        remarks=[Code.ONLY_REPORTING, Code.PERIODS],
        within=0,
    ),
    "actives: some day of a week has as many as the average day": Scenario(
        "actives",
        [exact({"time": DAYS[1]}, 0.2, 701, *range(7))],
        {},
        {"ci_low": [101], "ci_high": [701]},
        within=0,
    ),
    "actives: each platform has a whole of its own": Scenario(
        "actives",
        COUNTED,
        {},
        {
            "platform": ["linux", "mac"] * 3,
            "time": [DAYS[0], DAYS[0], DAYS[1], DAYS[1], ALL, ALL],
            "ci_low": [100, 100, 200, 200, 200, 200],
            "ci_high": [100, 100, 200, 200, 300, 300],
        },
        within=0,
    ),
    "actives: few reports are counted as well": Scenario(
        "actives", over(DAYS, 0.2, 0.2, n=30), {}, {"value": [30, 30, None], "n": [30, 30, 60]}
    ),
    "actives: any metric will do": Scenario(
        "actives", ages("time", (DAYS[0], 60)), {}, {"value": [600], "unit": "devices"}
    ),
    "adoption: a version has its exact share of the reports of its time": Scenario(
        "adoption",
        VERSIONS,
        {},
        {
            "value": [0.75, 0.25, 0.25, 0.75],
            "ci_low": [0.75, 0.25, 0.25, 0.75],
            "ci_high": [0.75, 0.25, 0.25, 0.75],
            "std_error": 0,
            "note": Part("exact: counted in the clear"),
        },
        {"exact": True},
        within=1e-12,
    ),
    "adoption: an item is estimated within each version": Scenario(
        "adoption",
        VERSIONS,
        {"item": "true"},
        {"value": [0.2, 0.4, 0.2, 0.4], "item": "true"},
        within=5e-3,
    ),
    "adoption: shares are of the same platform": Scenario(
        "adoption",
        [
            exact({"time": WEEKS[0], "platform": platform, "version": version}, 0.2, n)
            for platform, version, n in (("mac", "1", 300), ("mac", "2", 100), ("win", "1", 600))
        ],
        {"dimension": "version"},
        {"value": [0.75, 0.25, 1.0]},
        within=1e-12,
    ),
    "adoption: a version with few reports is counted": Scenario(
        "adoption",
        [*VERSIONS[:2], THIRD_VERSION],
        {},
        {"value": [900 / 1_260, 300 / 1_260, 60 / 1_260]},
        within=1e-12,
    ),
    "adoption: a version with few reports has no estimate": Scenario(
        "adoption",
        [*VERSIONS[:2], THIRD_VERSION],
        {"item": "true"},
        {"value": [..., ..., None], "reason": [None, None, FEW]},
    ),
    "adoption: reports under several definitions are counted together": Scenario(
        "adoption",
        [*VERSIONS, VERSIONS[0]],
        {},
        {"value": [1_800 / 2_100, 300 / 2_100, 0.25, 0.75]},
        within=1e-12,
    ),
    "key_values: named keys have both rows": Scenario(
        "key_values",
        [PAIRS],
        {"keys": ["music"]},
        {"item": ["music", "mean of music"], "unit": ["share", "minutes"]},
    ),
    "key_values: a share and a mean in its unit of each key": Scenario(
        "key_values",
        [PAIRS],
        {},
        {
            "item": [*KEYS, *(f"mean of {key}" for key in KEYS)],
            "unit": [*["share"] * 3, *["minutes"] * 3],
        },
    ),
    "compare: mac has 40 % of 3,000, the others 48 % of 5,000": Scenario(
        "compare",
        PLATFORMS,
        {},
        {
            "platform": ["linux", "mac", "win"],
            AGAINST: REST,
            "item": "true",
            "value": [0.1, -0.08, 0.4 - 0.457],
            "n": 8_000,
            "simultaneous": True,
        },
        {"comparisons": 3},
    ),
    "compare: the reference of all others has no row": Scenario(
        "compare",
        PLATFORMS,
        {"against": "linux"},
        {"platform": ["mac", "win"], "value": [-0.1, -0.1], AGAINST: "linux"},
    ),
    **{
        f"compare: time is compared with {against}": Scenario(
            "compare",
            over(WEEKS, 0.2, 0.3, 0.5)[::-1],
            {"against": against},
            {"value": differences, "time": WEEKS[1:3]},
        )
        for against, differences in (
            ("previous", [0.1, 0.2]),
            ("first", [0.1, 0.3]),
            (None, [0.1, 0.2]),
        )
    },
    "compare: months are compared within each platform": Scenario(
        "compare",
        TWO_PLATFORMS,
        {"by": "time"},
        {"platform": ["linux", "mac"], "value": [0.1, 0.2]},
    ),
    "compare: a difference that noise could make is no change": Scenario(
        "compare",
        along("platform", ("linux", 0.50, 4_000), ("mac", 0.51, 4_000)),
        {"against": "linux"},
        {"value": [0.01], "note": WORDS[Code.NO_CHANGE], "p_value": [0.687], "fakes_to_flip": ...},
        within=5e-3,
    ),
    "compare: a large difference is a change": Scenario(
        "compare",
        along("platform", ("linux", 0.50, 4_000), ("mac", 0.65, 4_000)),
        {"against": "linux"},
        {"value": [0.15], "note": None, "p_value": [0]},
    ),
    "compare: a slice with few reports is among the others only": Scenario(
        "compare",
        [*PLATFORMS[:2], exact({"platform": "bsd"}, 0.4, 500), SMALL],
        {},
        {
            "platform": ["linux", "mac", "bsd", "win"],
            "value": [..., ..., 0.4 - 3_260 / 7_060, None],
            "n": [7_560, 7_560, 7_560, ...],
            "reason": [None, None, None, FEW],
        },
        {"comparisons": 3},
    ),
    "compare: one group has no other": Scenario(
        "compare",
        PLATFORMS[:1],
        {},
        {"reason": ["nothing else beside it has enough reports"]},
    ),
    "compare: one stretch of time has none before it": Scenario(
        "compare", over(WEEKS, 0.5), {}, {}, remarks=[Code.NOTHING_TO_COMPARE]
    ),
    "compare: three items of one pair are three comparisons": Scenario(
        "compare",
        PAGES,
        {"against": "linux"},
        {"item": ["home", "news", "shop"]},
        {"comparisons": 3},
    ),
    "compare: means are compared in their unit": Scenario(
        "compare",
        ages("platform", ("linux", 60), ("mac", 80)),
        {"against": "linux"},
        {"unit": ["years"], "value": [10]},
    ),
    "segments: few reports are told together, last": Scenario(
        "segments",
        along("region", ("0", 0.2, 900), ("1", 0.5, 90), ("2", 0.3, 60)),
        {},
        {"region": ["0", OTHER], "item": "true", "n": [900, 150], "value": [0.2, 0.42]},
        {"segments": 2},
        within=0.01,
    ),
    "segments: too few even together say so": Scenario(
        "segments",
        along("region", ("0", 0.2, 900), ("1", 0.5, 30), ("2", 0.3, 60)),
        {},
        {
            "region": ["0", OTHER],
            "n": [900, 90],
            "value": [..., None],
            "reason": [None, Part("not enough reports: 90 of")],
        },
    ),
    "segments: one alone that is too small keeps its name": Scenario(
        "segments",
        along("region", ("0", 0.2, 900), ("1", 0.5, 60)),
        {},
        {"region": ["0", "1"], "n": [900, 60], "value": [..., None]},
    ),
    "segments: fewer than three are not pooled": Scenario(
        "segments",
        along("region", ("0", 0.2, 900), ("1", 0.4, 300)),
        {},
        {"postprocess": RAW, "value": [0.2, 0.4], "simultaneous": True, "alpha": 0.05},
        {"pooling": []},
        postprocess=POOLED,
    ),
    "segments: one item is named of several": Scenario(
        "segments", PAGES, {"item": "news"}, {"item": "news", "platform": ["linux", "mac"]}
    ),
    "top_k: the largest shares in order": Scenario(
        "top_k",
        [slice_of(category(*ITEMS), TALL)],
        {"k": 3},
        {"item": ["v0", "v1", "v2"], "simultaneous": True},
    ),
    "top_k: the least first if asked for": Scenario(
        "top_k",
        [slice_of(category("a", "b", "c", "d"), (500, 5, 400, 300))],
        {"k": 2, "order": "least"},
        {"item": ["b", "d"]},
    ),
    "top_k: what noise alone may have made is marked and counted": Scenario(
        "top_k",
        [slice_of(category(*ITEMS, epsilon='"3"'), TALL)],
        {},
        {
            "note": [
                *[Part("rank between")] * 4,
                Part("rank 5 of 12"),
                Part("rank"),
                *[Part("zero")] * 4,
            ]
        },
        {"slices": [{"items": 12, "not_distinguishable_from_zero": 6, "ranks": {"v0": [1, ...]}}]},
    ),
    "top_k: a slice that is too small does not tell which items lead": Scenario(
        "top_k",
        [slice_of(category(*ITEMS), (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200))],
        {"k": 2},
        {"item": ["v0", "v1"], "value": None},
        {"slices": []},
    ),
    "trend: each stretch has a row of its own number": Scenario(
        "trend",
        over(DAYS, 0.2, 0.3, 0.4),
        {},
        {"time": DAYS[:3], "item": "true", "value": [0.2, 0.3, 0.4], "simultaneous": False},
    ),
    "trend: a window longer than the series is said": Scenario(
        "trend", over(DAYS, 0.3, 0.3), {"window": 3}, {"item": []}, remarks=[Code.TOO_SHORT]
    ),
    "trend: a window holds every report of its stretches": Scenario(
        "trend",
        UNEVEN_DAYS,
        {"window": 2},
        {"n": [560, 560, 1_000], "value": ...},
    ),
    "trend: a stretch with few reports has none alone": Scenario(
        "trend",
        UNEVEN_DAYS,
        {},
        {"reason": [None, Part("not enough reports: 60 of"), None, None]},
    ),
    "trend: a step is found where it is": Scenario(
        "trend",
        over(DAYS, *[0.3] * 8, *[0.4] * 6),
        {},
        {},
        {
            "changes": [
                {
                    "changed_at": DAYS[8],
                    "detected": True,
                    "before": 0.3,
                    "after": 0.4,
                    "ci_low": ...,
                    "ci_high": ...,
                }
            ]
        },
        remarks=[Part("yes changed on 2026-03-09 from 30.0 to 40.0 % (difference")],
    ),
    "trend: a step between two epochs is named by both": Scenario(
        "trend",
        over([f"{day}/{day[:-2]}28" for day in DAYS], *[0.3] * 8, *[0.4] * 6),
        {},
        {},
        {"changes": [{"changed_at": "2026-03-09/2026-03-28"}]},
        remarks=[Part("yes changed between 2026-03-09 and 2026-03-28 from 30.0 to 40.0 %")],
    ),
    "trend: a constant series has no detectable change": Scenario(
        "trend",
        over(DAYS, *[0.3] * 14),
        {},
        {},
        {"changes": [{"detected": False, "note": WORDS[Code.NO_CHANGE], "p_value_constant": 1}]},
        remarks=[],
    ),
    "trend: a first stretch that runs shows no change": Scenario(
        "trend",
        [over(DAYS, 0.2)[0], replace(over(DAYS, 0.2, 0.5)[1], is_open=True)],
        {},
        {"is_open": [False, True]},
        {"changes": [], "unfinished": [DAYS[1]]},
        remarks=[],
    ),
    "trend: an unfinished stretch takes no part in a change": Scenario(
        "trend",
        [*over(DAYS, 0.2, 0.2, 0.2), replace(over(DAYS, 0.2, 0.2, 0.2, 0.5)[3], is_open=True)],
        {},
        {"is_open": [False] * 3 + [True], "value": [0.2, 0.2, 0.2, 0.5]},
        {"changes": [{"detected": False}], "unfinished": [DAYS[3]]},
        remarks=[],
    ),
    "trend: the same stretch is a change once it is over": Scenario(
        "trend", over(DAYS, 0.2, 0.2, 0.2, 0.5), {}, {}, {"changes": [{"detected": True}]}
    ),
    "trend: numbers are followed by their mean": Scenario(
        "trend",
        ages("time", *((day, 60) for day in DAYS[:3])),
        {},
        {"item": "mean", "unit": "years", "value": [40, 40, 40]},
    ),
    "lift: 40 % against 32 % is 8 points, and a quarter more": Scenario(
        "lift",
        along("arm", ("old", 0.32, 10_000), ("new", 0.40, 10_000)),
        ARMS,
        {
            "arm": "new",
            "against": "old",
            "item": "true",
            "measure": ["difference", ...],
            "value": [0.08, 0.25],
            "unit": ["share", "relative"],
            "note": None,
        },
        remarks=[remark(Code.LOOK_ONCE, group="arm")],
    ),
    "lift: a control that may be zero has a difference only": Scenario(
        "lift",
        along("arm", ("old", 0.001, 10_000), ("new", 0.2, 10_000)),
        ARMS,
        {"value": [..., None], "reason": [None, "no ratio: the control may be 0"]},
    ),
    "lift: several arms are counted together": Scenario(
        "lift",
        along("arm", ("old", 0.3, 10_000), ("new", 0.4, 10_000), ("other", 0.3, 10_000)),
        ARMS,
        {"arm": ["new", "new", "other", "other"]},
        {"comparisons": 2},
    ),
    "lift: what was not drawn by lot is said to be none": Scenario(
        "lift",
        along("platform", ("old", 0.3, 10_000), ("new", 0.5, 10_000)),
        {**ARMS, "dimension": "platform"},
        {},
        remarks=[remark(Code.NOT_DRAWN, group="platform")],
    ),
    "lift: an arm with few reports has a reason in both rows": Scenario(
        "lift",
        along("arm", ("old", 0.3, 10_000), ("b", 0.4, 900), ("new", 0.5, 60)),
        ARMS,
        {"arm": ["b", "b", "new", "new"], "value": [..., ..., None, None]},
    ),
    "lift: so has every arm if the control has few": Scenario(
        "lift",
        along("arm", ("old", 0.5, 60), ("new", 0.5, 60), ("b", 0.5, 900)),
        ARMS,
        {"arm": ["new", "new", "b", "b"], "value": None},
    ),
    "lift: ages have parts": Scenario(
        "lift", ages("arm", ("old", 60), ("new", 70)), ARMS, {"unit": ["years", "relative"]}
    ),
    "lift: degrees that may be below zero have none": Scenario(
        "lift",
        [replace(part, metric=COLD) for part in ages("arm", ("old", 60), ("new", 70))],
        ARMS,
        {"unit": ["years"]},
    ),
    "ratio: one number over the other in words of both": Scenario(
        "ratio",
        HALVES,
        {},
        {"value": [0.5], "item": ["bought / saw"], "unit": ["times"], "n": [8_000]},
        {"sides": [{"numerator": 0.3, "denominator": 0.6}]},
    ),
    "ratio: a denominator that may be zero bounds nothing": Scenario(
        "ratio",
        [HALVES[0], exact({}, 0.01, 1_000, metric=HALVES[1].metric)],
        {},
        {"value": [None], "ci_high": [None], "reason": [Part(WORDS[Code.UNBOUNDED])]},
        {"sides": [{"denominator": 0.01}]},
    ),
    "ratio: metrics of one name in two apps are two": Scenario(
        "ratio",
        [
            replace(part, metric=changed(part.metric, name="bought", app=app, shared=True))
            for part, app in zip(HALVES, ("shop", "cafe"), strict=True)
        ],
        {},
        {"item": ["shop/bought / cafe/bought"], "value": [0.5]},
    ),
    "ratio: groups are divided each by its own and none is left out": Scenario(
        "ratio",
        [
            exact({"platform": name}, share, n, metric=part.metric)
            for name, n, shares in (
                ("mac", 4_000, [0.3, 0.6]),
                ("bsd", 4_000, [0.3]),
                ("win", 60, [0.3, 0.6]),
            )
            for part, share in zip(HALVES, shares, strict=False)
        ],
        {},
        {
            "platform": ["mac", "bsd", "win"],
            "value": [0.5, None, None],
            "n": [8_000, 4_000, 120],
            "reason": [
                None,
                Part("saw: not enough reports: 0 of"),
                Part("bought: not enough reports: 60 of"),
            ],
        },
    ),
    "quantile: names and order as asked for, in the unit": Scenario(
        "quantile",
        [slice_of(metric_of(WAVE), BELL)],
        {"levels": [0.9, 0.5, 0.999]},
        {"item": ["p90", "p50", "p99.9"], "value": [23.4, 17, 32.5], "unit": "minutes"},
        within=0.7,
    ),
    "cdf: the number itself is counted in, and nobody is below the near end": Scenario(
        "cdf",
        [slice_of(metric_of(WAVE), BELL)],
        {"points": [47, 17, -3, 16.5]},
        {
            "item": ["-3", "16.5", "17", "47"],
            "value": [0, sum(BELL[:17]) / sum(BELL), sum(BELL[:18]) / sum(BELL), 1],
            "ci_low": [0, ..., ..., 1],
            "ci_high": [0, ..., ..., 1],
        },
        within=0.02,
    ),
    "histogram: a bucket holds its upper end": Scenario(
        "histogram",
        [slice_of(metric_of(WAVE, max="50", epsilon='"8"'), SHARP)],
        {"buckets": 10},
        {"item": ["0–5", "5–10", *[...] * 8], "value": [0, 1, *[0] * 8]},
        within=0.05,
    ),
    "histogram: no more buckets than the grid has steps": Scenario(
        "histogram",
        [slice_of(metric_of(WAVE, max="5"), [100] * 6)],
        {"buckets": 20},
        {"item": ["0–1", "1–2", "2–3", "3–4", "4–5"]},
    ),
    "range: both ends are counted in, and ends between two numbers hold what is inside": Scenario(
        "range",
        [slice_of(metric_of(WAVE), MIDDLE)],
        {"ranges": [[10, 20], [9.5, 20.9], [None, 9], [21, None], [None, None]]},
        {
            "item": ["10 to 20", "9.5 to 20.9", "up to 9", "from 21", "all"],
            "value": [0.748, 0.748, 0.068, 0.184, 1],
        },
        within=0.05,
    ),
    "range: items in their declared order, which add up": Scenario(
        "range",
        [SIZES],
        {"ranges": [["some", "many"], ["none", "none"], ["all", None], [None, None]]},
        {
            "item": ["some to many", "none to none", "from all", "all"],
            "value": [0.5, 0.1, 0.4, 1],
            "ci_low": [..., ..., ..., 1],
            "ci_high": [..., ..., ..., 1],
        },
    ),
    "range: a bound is called one where pairs of items are not known": Scenario(
        "range",
        [tallied(BITS, 900, 900, 900, 300, 400, 450, n=900)],
        {"high": "b"},
        {"note": [WORDS[Code.BOUND]]},
    ),
    "funnel: steps that were reached, and parts of the step before": Scenario(
        "funnel",
        [slice_of(grr(FUNNEL), (2_000, 3_000, 1_500, 500))],
        {},
        {
            "item": ["visit", "cart", "paid", "cart", "paid"],
            "measure": [*["reached"] * 3, *["of the step before"] * 2],
            "value": [5 / 7, 2 / 7, 0.5 / 7, 2 / 5, 1 / 4],
            "simultaneous": True,
        },
    ),
    "funnel: a conversion from a step that perhaps nobody reached has a reason": Scenario(
        "funnel",
        [slice_of(grr(FUNNEL), (4_000, 1_000, 5, 1))],
        {},
        {"value": [..., ..., ..., ..., None], "reason": [*[None] * 4, Part("not sure")]},
    ),
    "retention: who was active, and who of the first period came back": Scenario(
        "retention",  # 000, 001, 010, 011, 100, 101, 110, 111
        [slice_of(RETAINED, [500, 0, 400, 0, 3_000, 500, 800, 1_800])],
        {},
        {
            "item": ["w0", "w1", "w2", "w1", "w2"],
            "measure": [*["active"] * 3, *["of the first period"] * 2],
            "value": [6_100 / 7_000, 3_000 / 7_000, 2_300 / 7_000, 2_600 / 6_100, 2_300 / 6_100],
        },
    ),
    "map: a row a cell, rows from the south and columns from the west": Scenario(
        "map",
        [slice_of(grr(LOCATION, epsilon='"2"'), CELLS)],
        {},
        {
            "item": [f"{r},{c}" for r in range(2) for c in range(4)],
            "note": [WORDS[Code.NOISE]] * 4 + [None, WORDS[Code.NOISE], None, None],
            "simultaneous": True,
        },
        {"box": [-10, 45.5, 30, 47.5], "cells": {"1,2": [10, 46.5, 20, 47.5]}},
    ),
    "map: a coarser one keeps what is left at the edge": Scenario(
        "map",
        [slice_of(grr(LOCATION), CELLS)],
        {"coarsen": 3},
        {"item": ["0,0", "0,1"], "value": [0.7, 0.3]},
        {"cells": {"0,1": [20, 45.5, 30, 47.5]}},
    ),
    "map: cut to what is surely there": Scenario(
        "map",
        [slice_of(grr(LOCATION, epsilon='"2"'), CELLS)],
        {},
        {"value": [0, 0, 0, 0, ..., 0, ..., ...]},
        postprocess="base_cut",
    ),
    "mean: one row in the unit": Scenario(
        "mean",
        [slice_of(metric_of(WAVE), RISING, {"x": "y"})],
        {},
        {
            "item": [""],
            "x": ["y"],
            "unit": ["minutes"],
            "value": [sum(i * n for i, n in enumerate(RISING)) / sum(RISING)],
        },
        within=0.1,
    ),
    "crosstab: cells and margins under both names": Scenario(
        "crosstab",
        [slice_of(grr(PAIR), TABLE, {"x": "y"})],
        {},
        {
            "x": "y",
            "sex": [*["female"] * 3, *["male"] * 3, "female", "male", *[ALL] * 3],
            "income": [*["low", "middle", "high"] * 2, ALL, ALL, "low", "middle", "high"],
            "value": [0.2, 0.15, 0.05, 0.05, 0.15, 0.4, 0.4, 0.6, 0.25, 0.3, 0.45],
        },
    ),
    "crosstab: a part of a group that may be empty has no number": Scenario(
        "crosstab",
        [slice_of(grr(PAIR), (0, 0, 0, 2_000, 3_000, 4_000))],
        {"of": "sex"},
        {
            "sex": [*["female"] * 3, *["male"] * 3, *[ALL] * 3],
            "reason": [*[WORDS[Code.NO_GROUP]] * 3, *[None] * 6],
            "measure": "of each sex",
        },
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_question_is_answered_as_its_scenario_says(name: str) -> None:
    check(SCENARIOS[name])


Fields = dict[str, str]
CURVES: Final = ("quantile", "cdf", "histogram")
NO_TEXTS: Final = ("mean", "sum", "quantile", "trend", "compare", "map", "funnel", "range", "top_k")
NO_VECTORS: Final = ("mean", "sum", "frequency", "top_k", *CURVES, "variance")
TYPES: Final = {"funnel": "funnel", "retention": "retention", "map": "location"}  # of verbs


@pytest.mark.parametrize(
    ("verb", "kinds"),
    [
        ("compare", [BOOLEAN, CATEGORY, NUMBER]),
        ("crosstab", [PAIR, RECORD]),
        ("frequency", [SET, KEY_VALUE, RECORD]),
        *((verb, [RECORD]) for verb in ("estimate", "top_k", "segments", "compare", "trend")),
        ("funnel", [FUNNEL]),
        ("heavy_hitters", [STRING]),
        ("map", [LOCATION]),
        ("mean", [NUMBER]),
        ("range", [CATEGORY, FUNNEL, WAVE]),
        ("retention", [RETENTION]),
        *((verb, [VECTOR]) for verb in ("vector", "estimate", "segments", "compare", "trend")),
        *((verb, [WAVE]) for verb in (*CURVES, "variance")),
    ],
)
def test_a_verb_takes_the_metrics_that_it_is_for(verb: str, kinds: list[Fields]) -> None:
    assert [load(verb).refusal(metric_of(fields)) for fields in kinds] == [None] * len(kinds)


@pytest.mark.parametrize(
    ("verb", "word", "kinds"),
    [
        ("crosstab", "the type pair", [SET, NUMBER]),
        ("frequency", "histogram", [NUMBER]),
        ("heavy_hitters", "top_k", [CATEGORY]),
        ("key_values", "key_value", [CATEGORY]),
        ("range", "frequency", [SET]),
        ("range", "crosstab", [PAIR, RECORD]),
        ("range", "map", [LOCATION]),
        ("range", "retention", [RETENTION]),
        ("top_k", "quantile", [NUMBER]),
        ("vector", "the type vector", [NUMBER, CATEGORY]),
        *((verb, "ask for vector", [VECTOR]) for verb in NO_VECTORS),
        *((verb, "heavy_hitters", [STRING]) for verb in ("estimate", "frequency")),
        *((verb, "", [STRING]) for verb in NO_TEXTS),
        *((verb, "frequency", [CATEGORY]) for verb in (*CURVES, "mean", "sum", "variance")),
        *((verb, "key_values", [KEY_VALUE]) for verb in ("mean", "sum", "variance", "range")),
        *((verb, 'ask = ["quantiles"]', [NUMBER]) for verb in (*CURVES, "variance", "range")),
        *((verb, f"the type {kind}", [CATEGORY, SET]) for verb, kind in TYPES.items()),
    ],
)
def test_another_metric_is_refused_with_what_would_work(
    verb: str, word: str, kinds: list[Fields]
) -> None:
    """The refusal names a verb, a type or a mechanism."""
    for fields in kinds:
        refusal = load(verb).refusal(metric_of(fields))

        assert refusal is not None
        assert word in refusal


@pytest.mark.parametrize(
    ("verb", "fields", "options"),
    [
        *((verb, WAVE, {}) for verb in (*CURVES, "mean", "sum", "variance", "estimate")),
        ("frequency", CATEGORY, {}),
        ("range", CATEGORY, {"high": "pro"}),
        ("funnel", FUNNEL, {}),
        ("retention", RETENTION, {}),
        ("map", LOCATION, {}),
        ("crosstab", PAIR, {}),
    ],
)
def test_a_slice_that_is_too_small_has_as_many_rows_with_reasons(
    verb: str, fields: Fields, options: dict[str, Any]
) -> None:
    """Its shape is that of a full one; nothing is 0, and no fact tells a rest or an association."""
    metric = metric_of(fields) if fields is WAVE else metric_of(fields, mechanism='"grr"')
    small, full = (
        ask(verb, [slice_of(metric, [held] * metric.mechanism.domain_size)], options=options)
        for held in (2, 5_000)
    )

    assert [row.dimensions for row in small.rows] == [row.dimensions for row in full.rows]
    assert all(row.value is None for row in small.rows)
    assert all("not enough reports" in (row.reason or "") for row in small.rows)
    assert not any(small.facts.get(name) for name in ("unallocated", "association"))


TWO_ARMS: Final = [exact({"arm": name}, 0.3, 900) for name in ("old", "new")]
NUMBERS: Final = slice_of(metric_of(WAVE), [500] * 48)
EVEN_SIZES: Final = slice_of(category("none", "some", "many", "all"), [500] * 4)
SEXES: Final = slice_of(metric_of(PAIR, mechanism='"grr"'), [900] * 6, {"sex": "?"})
KEYED: Final = Slice(metric_of(KEY_VALUE), {}, 3_000, np.array([900, 600] * 3), (0,))
TEXT_CELLS: Final = metric_of(STRING).mechanism.tally_size
TEXTS: Final = Slice(metric_of(STRING), {}, TEXT_CELLS, np.ones(TEXT_CELLS, dtype=np.int64), (0,))
ONE_PAGE: Final = Slice(PAGE, {"time": "2026"}, 300, np.array([100, 100, 100]), (0,))

SIDES: Final = [exact({}, 0.5, 500, metric=changed(SHOWN, name=name)) for name in ("over", "under")]
WEEKLY: Final = exact({}, 0.5, 500, metric=changed(SHOWN, name="weekly", every="7d"))
CELLS_OF_PAIR: Final = slice_of(
    changed(metric_of(PAIR, mechanism='"grr"'), name="pair"), [2_000, 1_500, 500, 500, 1_500, 4_000]
)
RECORDS: Final = Slice(
    metric_of(RECORD, min_reports="100"),
    {},
    *reported(metric_of(RECORD), [{"plan": "free", "age": 20, "label": "left"}] * 200, "0")[::-1],
    (0,),
)
WEEK: Final = slice_of(metric_of(WAVE), [500] * 48, {"time": "2026-03-01"})


def answers(*dimensions: str) -> list[Slice]:
    """Return a slice of a boolean that has a value of each of *dimensions*."""
    return [exact(dict.fromkeys(dimensions, "2026"), 0.5, 500)]


@pytest.mark.parametrize(
    ("verb", "slices", "options", "message"),
    [
        ("adoption", answers("time"), {}, "dimensions: must"),
        ("adoption", answers("a", "b"), {}, r"options\.dimension: must"),
        ("compare", answers(), {}, "dimensions: must hold what to compare along"),
        ("compare", answers("os"), {"by": "arm"}, r"options\.by: must be one of .*: os"),
        ("compare", answers("os", "time"), {}, r"options\.by: must be one of"),
        ("compare", answers("os"), {"against": "b"}, r"options\.against: must be a value of os"),
        ("compare", answers("time"), {"against": "last"}, r"options\.against: .* be previous or"),
        ("crosstab", [EVEN_SIZES], {}, ".*the type pair"),
        ("crosstab", [SEXES], {}, "dimensions: sex"),
        ("heavy_hitters", [TEXTS], {"candidates": ["x" * 8, "x" * 9]}, ".*: must be different"),
        ("key_values", [KEYED], {"keys": ["golf"]}, r"options\.keys\.0: must be one of the 3 keys"),
        ("lift", TWO_ARMS, {"control": "none"}, r"options\.control: must .* reports: old, new"),
        (
            "lift",
            TWO_ARMS,
            {"dimension": "time"},
            r"options\.dimension: must be a dimension asked for",
        ),
        ("lift", TWO_ARMS, {"item": "maybe"}, r"options\.item: must be one of"),
        ("quantile", [NUMBERS], {"levels": [0.5, 0.5]}, r"options\.levels"),
        *(
            ("range", [one], {"ranges": [[None, None], ends]}, r"options\.ranges\.1: must")
            for one, ends in (
                *((NUMBERS, ends) for ends in ([20, 10], ["few", 10])),
                *((EVEN_SIZES, ends) for ends in (["many", "some"], ["few", "many"], [0, 1])),
            )
        ),
        ("ratio", SIDES, {"denominator": "maybe"}, r"options\.denominator: must be one of"),
        (
            "ratio",
            SIDES,
            {"of": "totals", "population": "drawn"},
            r"options\.population: totals",
        ),
        ("ratio", [SIDES[0], WEEKLY], {}, "metrics: must be reported equally often"),
        ("ratio", [WEEKLY, EVEN_SIZES], {}, r"options\.denominator: must be one of: none, some"),
        ("crosstab", [CELLS_OF_PAIR], {"of": "age"}, r"options\.of: must be one of: sex, income"),
        (
            "crosstab",
            [EVEN_SIZES, CELLS_OF_PAIR],
            {"of": "m"},
            r"options\.of: the two were collected",
        ),
        ("crosstab", [RECORDS], {"of": "answer"}, r"options\.of: must be one of: plan, age, label"),
        ("segments", [ONE_PAGE], {}, r"options\.item: must be one of: home, news, shop"),
        (
            "trend",
            answers("time"),
            {"levels": [0.5]},
            r"options\.levels: metric=crashed has no",
        ),
        ("trend", [WEEK], {"levels": [0.5, 0.5]}, r"options\.levels: must be different"),
        ("trend", [WEEK], {"levels": [0.5], "item": "mean"}, ".*without an item"),
        ("trend", [WEEK] * 401, {"levels": [0.5]}, ".*leaves 401 stretches, must be at most 400"),
        (
            "trend",
            [ONE_PAGE],
            {"item": "maybe"},
            r"options\.item: must be one of: home, news, shop",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_place_and_not_repeated(
    verb: str, slices: list[Slice], options: dict[str, Any], message: str
) -> None:
    """With what would work: an item, a value of a dimension, another end."""
    given = {"dimension": "arm", "control": "old", **options} if verb == "lift" else options

    with pytest.raises(QueryError, match=f"^{message}") as caught:
        ask(verb, slices, options=given)
    assert not {"few", "golf", "maybe"} & set(str(caught.value).replace(",", "").split())
