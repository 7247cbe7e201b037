"""Explanations, notices and reports in words: every number is one that the device holds to."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Client
from client_sdk.core.errors import RegistryError, UnknownMetricError
from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import names
from client_sdk.privacy.budget import NANO, most, reports
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.wording import explain, notice, what_was_sent, why_deniable
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.upload.tokens import Issuer
from tests.support.device.clock import FakeClock
from tests.support.device.device import (
    changed,
    dearest_span,
    make_client,
    metric_text,
    registry_of,
)
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    LOCATION,
    NUMBER,
    PAIR,
    RECORD,
    SET,
    STRING,
    TWO_LAYER,
    VECTOR,
    file_with,
)
from tests.support.sites.capsules import make_keys

WIDE = Caps(report="100", metric_week="9999", week="9999", lifetime="9999")


def registry_every(*every: str) -> Registry:
    return registry_of(
        *(metric_text(f"m{i}", every=each, epsilon="0.5") for i, each in enumerate(every))
    )


def test_caps_bound_what_is_said() -> None:
    """Law: what the caps forbid is not announced."""
    registry = registry_every("1h", "1d")
    caps = Caps(week="3", metric_week="2.5", lifetime="2.75")

    said = most(registry, caps)

    assert (said.week, said.life) == (2_750_000_000, 2_750_000_000)
    assert said.day == 2_750_000_000


def test_a_metric_above_a_cap_never_reports() -> None:
    """Law: it costs nothing, and the words say so."""
    registry = registry_every("1d")
    metric = registry.metric("m0")
    caps = Caps(report="0.4")

    assert (reports(metric, caps), most(registry, caps).week) == (False, 0)
    assert "none is sent" in explain(metric, caps)
    assert "asks nothing" in notice(registry, caps)


@pytest.mark.parametrize("cap", ["report", "metric_week", "week", "lifetime"])
def test_what_is_said_to_send_nothing_sends_nothing(cap: str) -> None:
    """Law: a metric whose second report of a value is above a cap has no first one either."""
    text = file_with(TWO_LAYER, epsilon='"0.5"', epsilon_permanent='"3"', every='"1d"')
    registry, clock = Registry.from_text(text), FakeClock()
    (metric,) = registry
    assert metric.most_nano > 2 * NANO > metric.mechanism.spent_nano
    client = make_client(registry=registry, caps=Caps(**{cap: "2"}), clock=clock)

    for value in ("free", "free", "pro"):
        client.record("m", value)
        clock.advance(days=1)

    assert "none is sent" in client.explain("m")
    assert "asks nothing" in client.notice()
    assert changed(client) == {"budget": 3}


def test_a_long_domain_is_cut_and_counted() -> None:
    """Law: a screen is not filled with labels."""
    labels = ", ".join(f'"label {i}"' for i in range(1_000))
    metric = registry_of(metric_text("m", f'type = "category"\nvalues = [{labels}]')).metric("m")

    text = explain(metric, Caps())

    assert "and 992 more" in text
    assert "label 8" not in text


def test_a_permanent_response_is_explained_as_one() -> None:
    """Law: what repeats is said, with what all reports of an answer cost together."""
    text = metric_text("m", 'type = "category"\nvalues = ["a", "b"]')
    registry = registry_of(text.replace('"fresh"', '"permanent"'))
    metric = registry.metric("m")

    assert metric.policy is not None
    assert metric.policy.leak in explain(metric, Caps())
    assert "cost at most ε 1 together" in explain(metric, Caps())
    assert metric.most_nano == metric.policy.nano_after(0)


def test_a_notice_states_epsilon_a_day_in_plain_words() -> None:
    """Law: the text has each title, ε of a day and a week, and what they do to odds."""
    registry = registry_every("1d", "7d")

    text = notice(registry, Caps())

    assert text.count("- A metric") == 2
    assert re.search(r"a whole day of reports costs at most ε 1\.", text)
    assert "2.8 times as likely" in text
    assert re.search(r"any seven days it is at most ε 4\.5", text)
    assert "platform" in text


def test_a_notice_says_what_pure_privacy_leaves_out() -> None:
    """Law: where privacy has a δ, the text has it too."""
    kind = 'type = "count"\nmin = 0\nmax = 9\nstep = 1\nunit = "files"'
    gaussian = f'{kind}\nmechanism = "discrete_gaussian"'
    registry = registry_of(metric_text("m", gaussian))
    (metric,) = registry

    assert metric.mechanism.delta > Fraction(0)
    text = notice(registry, Caps(delta="0.01"))
    assert "With a chance of at most" in " ".join(text.split())
    assert max(map(len, text.splitlines())) < 80
    assert all(len(line) > 60 for line in text.split("\n\n")[2].splitlines()[:-1])
    assert "With a chance" not in notice(registry_every("1d"), Caps())


def test_what_a_no_and_a_new_yes_can_cost_is_told() -> None:
    """Law: what was answered before is forgotten, so a new answer is charged, within the caps."""
    text = metric_text("m", 'type = "boolean"', epsilon="0.5").replace('"fresh"', '"permanent"')
    registry, clock = registry_of(text), FakeClock()
    caps = Caps(week="2", lifetime="3")
    client = make_client(registry=registry, clock=clock, caps=caps)
    for _ in range(20):
        client.record("m", True)
        client.set_consent("denied")
        client.set_consent("granted")
        clock.advance(days=1)

    life = dearest_span(client, 365)
    told = " ".join(client.notice().split())
    assert life == 3 * NANO > most(registry, caps).year
    assert "a new yes begins anew: up to ε 2 in any seven days and ε 3 for life" in told
    assert "begins anew" in explain(registry.metric("m"), caps)
    assert "begins anew" not in notice(registry_every("1d"), caps)


def test_a_client_explains_its_own_metrics() -> None:
    """Law: the words are those of the registry and the caps that the client was made with."""
    with make_client() as client:
        text = client.explain("dark_mode")

        assert text.startswith(explain(client.registry.metric("dark_mode"), Caps()))
        assert client.notice().startswith(notice(client.registry, Caps()))
        with pytest.raises(UnknownMetricError):
            client.explain("no_such_metric")


KEY_VALUE = {**NUMBER, "type": '"key_value"', "values": '["a", "b", "c"]'}
del KEY_VALUE["step"]
KINDS = {
    "category": CATEGORY,
    "set": SET,
    "number": NUMBER,
    "key_value": KEY_VALUE,
    "string": STRING,
    "vector": VECTOR,
    "record": RECORD,
}
VALUES = {
    "category": "pro",
    "set": ["a", "c"],
    "number": 4.5,
    "key_value": {"a": 3, "b": 10},
    "string": "word",
    "vector": [0.5, 0, -0.25],
    "record": {"plan": "pro", "age": 41, "label": "left"},
}


def metric_of(fields: dict[str, str], **changes: str) -> Metric:
    return Registry.from_text(file_with(fields, **changes)).metric("m")


def metric_with(mechanism: str) -> Metric:
    """Return a metric of the first type that *mechanism* serves."""
    for fields in KINDS.values():
        try:
            return metric_of(fields, mechanism=f'"{mechanism}"')
        except RegistryError:
            continue
    raise AssertionError(f"{mechanism} serves no type")


@pytest.mark.parametrize("mechanism", names())
def test_every_report_of_every_mechanism_has_words(mechanism: str) -> None:
    """A mechanism added later is shown to people without further work."""
    metric = metric_with(mechanism)
    encoded = metric.encode(VALUES[metric.type])

    payloads = [metric.mechanism.randomize(encoded, system_randomness()) for _ in range(20)]

    assert all(what_was_sent(metric, payload) for payload in payloads)
    assert not any("mean nothing" in what_was_sent(metric, payload) for payload in payloads)
    assert "odds by more than" in why_deniable(metric)


def test_a_noisy_number_is_shown_in_its_unit() -> None:
    """The words hold the number that the collector will count."""
    metric = metric_of(NUMBER)
    mechanism = metric.mechanism
    payload = mechanism.randomize(metric.encode(4.5), system_randomness())
    decoded = mechanism.decode(payload)  # type: ignore[attr-defined]  # it is a MeanMechanism

    assert what_was_sent(metric, payload) == (
        f"{float(decoded / 2):g} minutes, which is the value and noise together"
    )


GRR, OUE = {"mechanism": '"grr"'}, {"mechanism": '"oue"'}
EIGHT = {**CATEGORY, **OUE, "values": str([f"v{i}" for i in range(8)]).replace("'", '"')}
ODDS = "at most 73.2 %, and to each other answer with at least 26.8 %"


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        # p and q, ε of a report and its odds
        (BOOLEAN, ["at most 73.2 %", "at least 26.8 %", "ε 1 a report", "2.8 to 1"]),
        (CATEGORY, ["one of: free, pro, team."]),
        (SET, ["any of: a, b, c."]),
        (NUMBER, ["from 0 to 10.5 minutes"]),
        ({**KEY_VALUE, "mechanism": '"pckv_grr"'}, ["a, b, c"]),
        (
            {**BOOLEAN, "aggregate": '"any"', "otherwise": "false"},
            ["made from all answers of a period (whether any was true, or else false) and"],
        ),
        (
            LOCATION,
            [
                "The answer is a place, as one of 8 areas,",
                "each about 770 km wide and 110 km high",
            ],
        ),
    ],
)
def test_an_explanation_names_what_can_be_answered_and_its_odds(
    fields: dict[str, str], parts: list[str]
) -> None:
    metric = metric_of(fields)

    said = explain(metric, WIDE)

    assert [part for part in (metric.question, *parts) if part not in said] == []


@pytest.mark.parametrize(
    ("fields", "payload", "words"),
    [
        *(({**CATEGORY, **GRR}, bytes([i]), f'"{v}"') for i, v in enumerate(("free", "pro"))),
        (EIGHT, b"\0", "none of the 8 answers"),
        (EIGHT, b"\xf0", '4 of 8 answers: "v0", "v1", "v2", "v3"'),
        (EIGHT, b"\xff", '8 of 8 answers: "v0", "v1", "v2", "v3" and 4 more'),
        # a row and a column would mean nothing to anybody
        ({**LOCATION, **GRR}, b"\5", '"from 0° to 10° east, 46.5° to 47.5° north"'),
        (
            {**PAIR, **OUE},
            b"\x84",
            '2 of 6 answers: "sex: female, income: low", "sex: male, income: high"',
        ),
        # keys with the upper end, then keys with the lower end
        ({**KEY_VALUE, "mechanism": '"pckv_grr"'}, b"\1", '"b" with 10.5 minutes'),
        ({**KEY_VALUE, "mechanism": '"pckv_grr"'}, b"\3", '"a" with 0 minutes'),
        # a damaged history is shown as it is, never as an answer
        *(
            ({**CATEGORY, **GRR}, wrong, f"the bytes {wrong.hex()}, which mean nothing here")
            for wrong in (b"", b"\x09", b"\0\0")
        ),
    ],
)
def test_a_report_is_put_in_the_words_of_its_metric(
    fields: dict[str, str], payload: bytes, words: str
) -> None:
    assert what_was_sent(metric_of(fields), payload) == words


def test_a_payload_that_names_no_value_is_a_number_with_the_odds_that_it_shifts() -> None:
    """What a person can picture: how much more one value explains it than another."""
    metric = metric_of(STRING)

    said = what_was_sent(metric, bytes(metric.mechanism.payload_size))

    assert said == "the number 0, drawn by chance: it shifts the odds of two values by 2.8 to 1"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (BOOLEAN, [ODDS, "It shifts nobody's odds by more than 2.8 to 1."]),
        (
            {**NUMBER, "mechanism": '"discrete_gaussian"'},
            ["to 1, but for a chance of 1e-06 of saying more"],
        ),
        (
            {**CATEGORY, **GRR, "longitudinal": '"permanent"'},
            ["All reports of one answer together: by no more than 2.8 to 1"],
        ),
    ],
)
def test_the_odds_are_those_of_what_was_charged(fields: dict[str, str], words: list[str]) -> None:
    """Rounded outward: the words promise no more than the channel keeps."""
    said = why_deniable(metric_of(fields))

    assert [part for part in words if part not in said] == []


ISSUER = Issuer("https://issuer.example.org", "p" * 43, "signed")


@pytest.mark.parametrize(
    ("options", "said", "unsaid"),
    [
        ({}, ["server that collects reports sees your internet address"], "travel through"),
        (
            {"relay": "https://relay.example.org:8443/in"},
            ["travel through relay.example.org:8443, which sees", "does not see your address"],
            "as any server",
        ),
        (
            {"tokens": ISSUER},
            ["as any server does", "The server issuer.example.org gives out permits"],
            "travel through",
        ),
        (
            {"relay": "https://relay.example.org", "tokens": ISSUER},
            ["travel through relay.example.org,", "issuer.example.org gives out permits"],
            "as any server",
        ),
    ],
    ids=["direct", "relay", "tokens", "relay and tokens"],
)
def test_notice_and_explanation_say_who_sees_the_internet_address(
    tmp_path: Path, options: dict[str, Any], said: list[str], unsaid: str
) -> None:
    """Law: what is true of this client's own way, and of no other."""
    if "relay" in options:
        options = {**options, "relay_key": make_keys(tmp_path).relay_key}
    client = Client(
        "https://collector.example.org", "key", registry_every("1d"),
        consent="unknown", data_dir=None, mode="manual", **options,
    )  # fmt: skip

    for text in (client.notice(), client.notice(ascii=True), client.explain("m0")):
        assert all(part in text for part in said)
        assert unsaid not in text
    client.close()
