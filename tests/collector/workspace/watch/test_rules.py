"""A file of watches is right as a whole, or refused by the name of what is wrong."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from client_sdk.core.epoch import DAY, epoch_start
from collector.core.cells import ends
from collector.core.errors import ConfigError
from collector.workspace.watch.rules import YEARLY, parse, read

GOOD = '[[watch]]\nname = "w"\nmetric = "m"\n'
CHANNEL = '[[channel]]\nname = "c"\n'
MAIL = CHANNEL + 'mail = ["a@b"]\nsender = "a@b"\nserver = "h:25"\n'
HOOK = CHANNEL + 'webhook = "https://x.example.org"\n'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "watch"),
        ("watch = 3", "watch"),
        ("[[watch", "is no TOML"),
        (GOOD, "must have exactly one of above, below, changed, silent; has none"),
        (GOOD + "above = 1\nbelow = 2", "has above, below"),
        (GOOD + "silent = 1.5", "silent"),
        (GOOD + "above = nan", "above"),
        (GOOD + "above = inf", "above"),
        (GOOD + 'above = "1"', "above"),
        (GOOD + "changed = -1", "changed"),
        (GOOD + "above = 1\nwindow = 0", "window"),
        (GOOD + "above = 1\nversion = 4", "version"),
        (GOOD + "above = 1\ncolour = 2", "colour"),
        (GOOD + 'above = 1\nchannels = ["gone"]', "is no channel; known are none"),
        (GOOD + 'silent = 0.5\nitem = "a"', "silent counts reports"),
        (GOOD + "above = 1\n" + GOOD + "above = 2", "must be given once"),
        (GOOD.replace('"w"', '"W x"') + "above = 1", "must be 1 to 40"),
        (GOOD.replace('"w"', '"*"') + "above = 1", "must be 1 to 40"),
        ("false_alarms = 0\n" + GOOD + "above = 1", "false_alarms"),
        (GOOD + "above = 1\n" + CHANNEL, "either a webhook or mail"),
        (GOOD + "above = 1\n" + HOOK + 'mail = ["a@b"]', "either a webhook or mail"),
        (GOOD + "above = 1\n" + HOOK + 'webhook_file = "x"', "not both"),
        (GOOD + "above = 1\n" + HOOK.replace("https", "http"), "channel.c.webhook=: must be https"),
        (GOOD + "above = 1\n" + HOOK.replace("https", "ftp"), "must be https://host/path"),
        (GOOD + "above = 1\n" + HOOK.replace("//", "//u:p@"), "must be https://host/path"),
        (GOOD + "above = 1\n" + HOOK.replace("x.example.org", "[x"), "must be https://host/path"),
        (GOOD + "above = 1\n" + CHANNEL + 'mail = ["a@b"]\nsender = "a@b"', "host:port"),
        (
            GOOD + "above = 1\n" + CHANNEL + 'mail = ["a\\nb"]\nsender = "a@b"\nserver = "h:25"',
            "must be addresses",
        ),
        (GOOD + "above = 1\n" + MAIL + 'user = "u"', "needs password_file, and the reverse"),
        (GOOD + "above = 1\n" + MAIL + 'password_file = "x"', "needs password_file, and"),
    ],
)
def test_a_file_with_a_fault_is_refused_by_its_name(text: str, what: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse(text)
    assert what in str(refusal.value)


def test_a_channel_of_this_network_may_be_plain() -> None:
    watches = parse(GOOD + "above = 1\n" + HOOK.replace("https", "http") + "private = true")

    assert watches.channel[0].webhook == "http://x.example.org"


def test_a_file_that_is_not_there_is_refused(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read(f"{tmp_path}/none")


def test_a_file_of_other_bytes_is_refused_without_them(tmp_path: Path) -> None:
    path = tmp_path / "watches.toml"
    path.write_bytes(b"\xff canary")

    with pytest.raises(ConfigError, match="cannot be read as UTF-8 text") as refused:
        read(str(path))
    assert "canary" not in str(refused.value)


def test_the_rates_of_all_watches_add_up_to_the_rate_of_the_file() -> None:
    """Law: however many watches there are, a year of their evaluations errs with what is said."""
    text = "false_alarms = 0.1\n" + "".join(
        GOOD.replace('"w"', f'"w{place}"') + "above = 1\n" for place in range(50)
    )
    watches = parse(text)

    for every in ("1h", "1d", "7d", "28d"):
        yearly = YEARLY["1d" if every == "1h" else every]
        assert watches.rate(every) * yearly * 50 == pytest.approx(0.1)


@pytest.mark.parametrize("every", ["1d", "7d", "28d"])
def test_no_365_days_have_more_evaluations_than_are_counted(every: str) -> None:
    """Law of the year: a window of 365 days, wherever it begins, holds no more publications."""
    published = [ends(every, epoch)[0] for epoch in range(500, 1_500)]
    assert all(b - a == epoch_start(every, 1) - epoch_start(every, 0)
               for a, b in pairwise(published))  # fmt: skip

    most = max(
        sum(start <= moment < start + 365 * DAY for moment in published[:800])
        for start in published[:50]
    )

    assert most == YEARLY[every]


def test_another_question_has_another_definition_and_other_words_have_not() -> None:
    (first,) = parse(GOOD + "above = 1").watch
    (other,) = parse(GOOD + "above = 2").watch
    (noted,) = parse(GOOD + 'above = 1\nnote = "call me"').watch

    assert first.definition != other.definition
    assert first.definition == noted.definition
