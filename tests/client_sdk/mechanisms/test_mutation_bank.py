"""The mutation bank: planted bugs, and the law of this suite that kills each.

A bug counts as killed if the very test that guards the shipped mechanisms fails on it, and that
test passes on the mechanism without the bug.  Bugs of device and collector are planted in a copy of
the source, in which their test then runs.

Print the table: ``python -m tests.client_sdk.mechanisms.test_mutation_bank``.
"""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from client_sdk.core.randomness import ByteRandomness
from client_sdk.mechanisms.composite.privset import PrivSet
from client_sdk.mechanisms.composite.sampled_attribute import SampledAttribute
from client_sdk.mechanisms.items.block_design import BlockDesign
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.mechanisms.numbers.codebook import Codebook
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from client_sdk.mechanisms.numbers.minimax import Minimax
from tests.client_sdk.mechanisms import (
    test_codebook,
    test_exhaustive_bytes,
    test_frequency_law,
    test_privacy_law,
)
from tests.support.enumeration import mutants
from tests.support.enumeration.sampling_path import ROOT, faults_on_path, sources
from tests.support.enumeration.vectors import Small

PROJECT: Final = Path(__file__).parents[3]
TAIL: Final = Fraction(1, 10**5)  # mass of a path of Laplace noise below which it is left

CHANNEL: Final = inspect.unwrap(
    test_frequency_law.test_the_channel_is_the_enumerated_probability_of_support
)
PRIVACY: Final = inspect.unwrap(
    test_privacy_law.test_no_payload_is_more_than_e_to_the_spent_likelier_under_another_value
)
VALIDITY: Final = inspect.unwrap(
    test_privacy_law.test_every_payload_that_can_occur_is_valid_and_of_the_stated_size
)
UNBIASED: Final = inspect.unwrap(
    test_frequency_law.test_the_mean_report_is_the_position_up_to_the_mass_not_reached
)
BYTES: Final = test_exhaustive_bytes.byte_strings_follow_the_law
MEAN: Final = test_codebook.reports_average_to_the_vector


def exact_path(kind: type[Any]) -> None:
    """Hold the sampling path of *kind* to integers, fractions and the primitives."""
    planted = {"planted.py": textwrap.dedent(inspect.getsource(kind))}
    assert faults_on_path({**sources(kind.name), **planted}, {ROOT}) == {}


class Bug(NamedTuple):
    """A bug, the law that kills it, and what that law is given with and without the bug."""

    bug: str
    law: Callable[..., None]
    planted: tuple[Any, ...]
    sound: tuple[Any, ...]


class SourceBug(NamedTuple):
    """A bug of the source: *old* becomes *new* in *file*, and *law* is the test that fails."""

    bug: str
    law: str
    file: str
    old: str
    new: str


def of(
    planted: type[Any], sound: type[Any], epsilon: str, size: int, **own: int
) -> tuple[Any, Any]:
    """Return both mechanisms as arguments of a law."""
    rest = TAIL if issubclass(sound, DiscreteLaplace) else Fraction(0)
    bug, honest = (
        Small(kind.__name__, kind(epsilon, size, **own), rest) for kind in (planted, sound)
    )
    return (bug,), (honest,)


TWO_BYTES: Final = Small("coarse", GRR("1", 4, precision=8), Fraction(1, 1 << 16))
FEW: Final = {"words": 4, "subset_size": 2, "seeds": 2}  # words that can be enumerated

BANK: Final = (
    Bug("unary bits flipped twice", CHANNEL, *of(mutants.DoubleFlip, SUE, "1", 3)),
    Bug("p and q swapped", CHANNEL, *of(mutants.SwappedPQ, SUE, "1", 3)),
    Bug("epsilon doubled", PRIVACY, *of(mutants.DoubledEpsilon, GRR, "1", 3)),
    Bug("randomized response off by one", CHANNEL, *of(mutants.OffByOne, GRR, "1", 4)),
    Bug("modulo bias in the choice of a lie", CHANNEL, *of(mutants.ModuloBias, GRR, "1", 4)),
    Bug("modulo bias in uniform", BYTES, (TWO_BYTES, mutants.ByRemainder), (TWO_BYTES,)),
    Bug("uniform over k instead of k - 1", CHANNEL, *of(mutants.OverAll, GRR, "1", 4)),
    Bug("p rounded up by 2^-128", PRIVACY, *of(mutants.RoundedUp, GRR, "1", 3)),
    Bug("≤ for < in the coin", BYTES, (TWO_BYTES, mutants.AtMost), (TWO_BYTES, ByteRandomness)),
    Bug("one draw of noise for all bits", PRIVACY, *of(mutants.ReusedNoise, OUE, "1", 3)),
    Bug("Mersenne twister seeded by the clock", exact_path, (mutants.TimeSeeded,), (GRR,)),
    Bug("Laplace noise in floats", exact_path, (mutants.FloatLaplace,), (DiscreteLaplace,)),
    Bug("half the scale of noise", PRIVACY, *of(mutants.HalfTheScale, DiscreteLaplace, "2", 3)),
    Bug("zero counted twice", PRIVACY, *of(mutants.TwoZeros, DiscreteLaplace, "2", 3)),
    Bug(
        "no clamp after the noise",
        VALIDITY,
        *of(mutants.NeverClamped, mutants.ShortRange, "2", 3),
    ),
    Bug("subset of wrong size", CHANNEL, *of(mutants.WrongSubset, SubsetSelection, "0.5", 5)),
    Bug("a lie that holds the item", CHANNEL, *of(mutants.AnyPlace, BlockDesign, "1", 5)),
    Bug(
        "subsets that meet a set twice likelier than others that meet it",
        PRIVACY,
        *of(mutants.UncheckedWidth, PrivSet, "1", 2, pad=2, prime=5),
    ),
    Bug(
        "q = 1/g for a hash that is not ideal",
        CHANNEL,
        *of(mutants.IdealHash, OLH, "1", 3, prime=5),
    ),
    Bug("a row of the matrix left out", CHANNEL, *of(mutants.SignOfRowZero, Hadamard, "1", 3)),
    Bug("payload as short as its item", VALIDITY, *of(mutants.TellingLength, GRR, "1", 3)),
    Bug("words of plain signs", MEAN, (mutants.SignWords,), (Codebook,)),
    Bug("a bound learned from the data", MEAN, (mutants.LearnedBound,), (Codebook,)),
    Bug("a seed chosen by the vector", PRIVACY, *of(mutants.ChosenSeed, Codebook, "1", 2, **FEW)),
    Bug(
        "near words as many as fit",
        PRIVACY,
        *of(mutants.OwnSubset, Codebook, "1", 2, **{**FEW, "seeds": 8}),
    ),
    Bug(
        "an attribute chosen by the record",
        PRIVACY,
        *of(mutants.ChosenAttribute, SampledAttribute, "1", 5, starts=5),
    ),
    Bug(
        "noise drawn again for a retry",
        PRIVACY,
        *of(mutants.RedrawnNoise, SampledAttribute, "1", 5, starts=5),
    ),
    Bug(
        "two attributes of one record",
        PRIVACY,
        *of(mutants.TwoAttributes, SampledAttribute, "1", 5, starts=5),
    ),
    Bug("rounding without a draw", UNBIASED, *of(mutants.NearerInput, Minimax, "1", 5)),
    Bug("outputs read as even", UNBIASED, *of(mutants.EvenOutputs, Minimax, "1", 5)),
    Bug("a window of one output less", PRIVACY, *of(mutants.NarrowWindow, Minimax, "1", 5)),
    Bug("near words 2^-128 too often", PRIVACY, *of(mutants.NearTooOften, Codebook, "1", 2, **FEW)),
)

EXCLUSIONS: Final = "tests/collector/query/test_exclusions.py"
SOURCE_BANK: Final = (
    SourceBug(
        "digest without the mechanism",
        "tests/client_sdk/registry/test_types.py::test_what_changes_the_meaning_changes_the_digest",
        "client_sdk/registry/keys.py",
        'Key("mechanism", "table", "choice", AUTO, in_digest=True,',
        'Key("mechanism", "table", "choice", AUTO,',
    ),
    SourceBug(
        "ledger not charged",
        "tests/client_sdk/test_client.py::test_the_ledger_is_charged_what_the_channel_spends",
        "client_sdk/recording/recorder.py",
        "            self.ledger.charge(tx, charge, day)\n",
        "",
    ),
    SourceBug(
        "a repeated value never charged",
        "tests/client_sdk/registry/test_longitudinal.py"
        "::test_a_two_layer_response_is_charged_as_its_policy_says",
        "client_sdk/recording/recorder.py",
        "policy.nano_after(reports)",
        "policy.nano_after(reports + 2)",
    ),
    SourceBug(
        "what blurs a second layer taken for likelier than it is",
        "tests/client_sdk/registry/test_longitudinal.py"
        "::test_one_two_layer_report_is_bounded_by_the_report_epsilon_and_reaches_it",
        "client_sdk/mechanisms/mixture.py",
        "return 1 + law.single * (self.base.likelihood_ratio - 1)",
        "return 1 + 2 * law.single * (self.base.likelihood_ratio - 1)",
    ),
    SourceBug(
        "weeks counted by the wall clock",
        "tests/client_sdk/storage/test_trusted_clock.py"
        "::test_trusted_time_advances_by_the_least_that_the_clocks_allow",
        "client_sdk/privacy/time_off.py",
        "return min(wall, ran + spent)",
        "return wall",
    ),
    SourceBug(
        "a copied database believed",
        "tests/client_sdk/storage/test_doubt.py::test_copies_share_no_report_no_memo_and_no_budget",
        "client_sdk/storage/database.py",
        "moved = known is not None and known != identity",
        "moved = False",
    ),
    SourceBug(
        "a retry goes under another upload id",
        "tests/client_sdk/upload/test_upload_machine.py"
        "::test_no_history_breaks_a_promise_of_uploads",
        "client_sdk/upload/sealing.py",
        "SealedUpload(*row)",
        """SealedUpload(row[0], row[1].replace(b'"id":"', b'"id":"A'), row[2])""",
    ),
    SourceBug(
        "a gradient scaled by its own length",
        "tests/client_sdk/learning/test_rounds.py"
        "::test_a_gradient_is_that_of_the_loss_at_the_public_model",
        "client_sdk/learning/rounds.py",
        "error = domain.prediction(row, theta) - target",
        "error = 1.0 if domain.prediction(row, theta) > target else -1.0",
    ),
    SourceBug(
        "a row that is not scaled to length 1",
        "tests/client_sdk/registry/test_values.py"
        "::test_a_row_is_made_by_the_bounds_of_the_registry_alone",
        "client_sdk/registry/types/gradient.py",
        "return [number / length for number in numbers]",
        "return numbers",
    ),
    SourceBug(
        "a gradient that is not shortened to its bound",
        "tests/client_sdk/registry/test_values.py"
        "::test_a_longer_vector_counts_as_that_of_the_bound_in_its_direction",
        "client_sdk/registry/types/vector.py",
        "if whole <= UNIT * UNIT:",
        "if whole:",
    ),
    SourceBug(
        "a vector of any length taken by its mechanism",
        "tests/client_sdk/mechanisms/test_parameters.py"
        "::test_a_value_outside_the_domain_is_refused_before_anything_is_drawn",
        "client_sdk/mechanisms/vectors.py",
        "sum(x * x for x in value) > UNIT * UNIT",
        "sum(x * x for x in value) < 0",
    ),
    SourceBug(
        "a model that nobody signed",
        "tests/client_sdk/learning/test_rounds.py"
        "::test_a_model_that_somebody_else_signed_or_changed_is_refused",
        "client_sdk/learning/rounds.py",
        """    require_signed(model, domain.key)
    number""",
        "    number",
    ),
    SourceBug(
        "coefficients of any length",
        "tests/client_sdk/learning/test_rounds.py"
        "::test_a_model_of_other_numbers_is_refused_before_a_row_is_looked_at",
        "client_sdk/learning/rounds.py",
        "most = float(domain.radius) * _SLACK",
        "most = 1e308",
    ),
    SourceBug(
        "a taste recorded twice",
        "tests/client_sdk/registry/test_taste_metric.py"
        "::test_a_device_that_is_asked_twice_answers_once",
        "client_sdk/recording/recorder.py",
        """                epoch=pending.epoch,
                nano=metric.mechanism.spent_nano,""",
        """                epoch=pending.epoch + pending.encoded[0],
                nano=metric.mechanism.spent_nano,""",
    ),
    SourceBug(
        "a taste asked every week",
        "tests/client_sdk/registry/test_types.py::test_a_broken_rule_is_named_with_its_place",
        "client_sdk/registry/types/vector.py",
        'if entry.get("every", ONCE) != ONCE:',
        "if False:",
    ),
    SourceBug(
        "likes that are not shortened to length 1",
        "tests/client_sdk/registry/test_taste_metric.py"
        "::test_every_moment_is_that_of_the_definition_and_of_length_1",
        "client_sdk/registry/types/vector.py",
        "alone, together = UNIT // len(liked), isqrt(2 * UNIT * UNIT) // len(liked)",
        "alone, together = UNIT, isqrt(2 * UNIT * UNIT)",
    ),
    SourceBug(
        "a step of fewer reports than an answer may be of",
        "tests/collector/learning/test_rounds.py::test_too_few_reports_give_no_step",
        "collector/learning/rounds.py",
        "if own is None or own.n < least:",
        "if own is None:",
    ),
    SourceBug(
        "a round charged as an epoch of its own",
        "tests/client_sdk/learning/test_rounds.py::test_a_device_takes_part_in_one_round_for_ever",
        "client_sdk/recording/recorder.py",
        """                epoch=pending.epoch,
                nano=metric.mechanism.spent_nano,""",
        """                epoch=pending.epoch + int((pending.label or {}).get("round", 0)),
                nano=metric.mechanism.spent_nano,""",
    ),
    SourceBug(
        "a report sent under the round of the device",
        "tests/client_sdk/learning/test_rounds.py"
        "::test_a_report_names_the_round_of_its_model_and_nothing_else",
        "client_sdk/recording/recorder.py",
        "metric.segments, pending.label)",
        "metric.segments)",
    ),
    SourceBug(
        "a late report added to the current round",
        "tests/collector/learning/test_rounds.py::test_reports_of_another_round_are_in_no_step",
        "collector/learning/rounds.py",
        "least, mine = needed(self.metric), reports.get(self.number)",
        "least, mine = needed(self.metric), reports.get(max(self.number - 1, 1))",
    ),
    SourceBug(
        "the key of a report lost at the fold",
        f"{EXCLUSIONS}::test_excluded_is_as_never_sent_integer_for_integer",
        "collector/estimation/tally.py",
        "columns.setdefault(column.cell, []).append(column.payloads)",
        """from ..core.cells import split_source

            cell = column.cell._replace(segment=split_source(column.cell.segment)[1])
            columns.setdefault(cell, []).append(column.payloads)""",
    ),
    SourceBug(
        "the key of a report lost at intake",
        "tests/collector/web/test_uploads.py"
        "::test_what_is_known_of_how_an_upload_came_reaches_the_store_with_its_reports",
        "collector/web/ingest/upload.py",
        "        source |= grant.source\n",
        "",
    ),
    SourceBug(
        "what two exclusions leave out counted twice",
        f"{EXCLUSIONS}::test_exclusions_that_overlap_count_once",
        "collector/query/reading.py",
        "totals[groups[cell]].excluded += n",
        "totals[groups[cell]].excluded += n * len(plan.excluded.applied)",
    ),
    SourceBug(
        "the same exclusion written twice",
        "tests/collector/query/test_repair.py"
        "::test_what_is_excluded_already_is_refused_and_an_overlap_is_not",
        "collector/query/repair.py",
        "if each.included is None:\n            raise",
        "if False:\n            raise",
    ),
    SourceBug(
        "a published version changed by a later exclusion",
        f"{EXCLUSIONS}::test_a_version_that_was_asked_for_stays_and_says_that_an_exclusion_exists",
        "collector/query/reading.py",
        "if plan.is_as_folded and not each.deleted)",
        "if each.deleted and not each.deleted)",
    ),
    SourceBug(
        "the last day of an exclusion left in",
        f"{EXCLUSIONS}::test_excluded_is_as_never_sent_integer_for_integer",
        "collector/core/exclusions.py",
        "(day_of_date(last) + 1) * DAY",
        "day_of_date(last) * DAY",
    ),
    SourceBug(
        "the day after an exclusion taken out",
        f"{EXCLUSIONS}::test_excluded_is_as_never_sent_integer_for_integer",
        "collector/core/exclusions.py",
        "(day_of_date(last) + 1) * DAY",
        "(day_of_date(last) + 2) * DAY",
    ),
    SourceBug(
        "a few reports of a key left out alone",
        f"{EXCLUSIONS}::test_no_difference_of_two_answers_tells_of_a_few_reports_whose_they_are",
        "collector/query/exclusions.py",
        "return gone | small if gone & small else gone",
        "return gone",
    ),
    SourceBug(
        "small keys counted together that are few",
        "tests/collector/query/test_key_filters.py"
        "::test_no_two_questions_about_keys_tell_of_a_few_reports_whose_they_are",
        "collector/query/exclusions.py",
        "        small.append(rest[0])\n",
        "        pass\n",
    ),
    SourceBug(
        "an answer kept from before an exclusion",
        f"{EXCLUSIONS}::test_an_answer_that_was_kept_is_not_given_once_something_is_excluded",
        "collector/query/cache.py",
        "declared, plan.excluded]",
        "declared]",
    ),
)


ALONE: Final = ("tests/client_sdk/", "--noconftest", "--hypothesis-profile=ci")  # half the time


def fails(laws: Iterable[str], folder: Path) -> bool:
    """Run *laws* in *folder*; return whether one failed, rather than none being found."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist"]
    statuses = set[int]()
    for is_alone, group in groupby(sorted(laws), lambda law: law.startswith(ALONE[0])):
        command = [
            sys.executable,
            "-m",
            "pytest",
            *options,
            *(ALONE[1:] if is_alone else ()),
            *group,
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stdout
        statuses.add(done.returncode)
    return 1 in statuses


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the project's source and tests, in which the laws hold."""
    folder = tmp_path_factory.mktemp("mutated")
    for part in ("client_sdk", "collector", "tests", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / part, folder / part, ignore=ignored)
    shutil.copy(PROJECT / "pyproject.toml", folder)
    assert not fails({bug.law for bug in SOURCE_BANK}, folder)
    return folder


@pytest.mark.parametrize("bug", BANK, ids=lambda bug: bug.bug)
def test_a_planted_bug_is_killed_by_the_law_that_guards_against_it(bug: Bug) -> None:
    with pytest.raises((AssertionError, OverflowError, ValueError)):
        bug.law(*bug.planted)


@pytest.mark.parametrize("bug", BANK, ids=lambda bug: bug.bug)
def test_the_law_passes_without_the_bug(bug: Bug) -> None:
    bug.law(*bug.sound)


@pytest.mark.parametrize("bug", SOURCE_BANK, ids=lambda bug: bug.bug)
def test_a_bug_planted_in_the_source_is_killed(bug: SourceBug, copy: Path) -> None:
    file = copy / bug.file
    sound = file.read_text("utf-8")
    assert sound.count(bug.old) == 1

    file.write_text(sound.replace(bug.old, bug.new), "utf-8")
    killed = fails([bug.law], copy)
    file.write_text(sound, "utf-8")

    assert killed


def table() -> str:
    """Return every law and the bugs that it kills, as Markdown."""
    rows = [(bug.bug, f"{Path(inspect.getfile(bug.law)).stem}.{bug.law.__name__}") for bug in BANK]
    rows += [(bug.bug, bug.law.rpartition("/")[2].replace(".py::", ".")) for bug in SOURCE_BANK]
    killed: dict[str, list[str]] = {}
    for bug, law in rows:
        killed.setdefault(law, []).append(bug)
    lines = ["| test | planted bugs that it kills |", "|---|---|"]
    return "\n".join(
        [*lines, *(f"| `{law}` | {'; '.join(bugs)} |" for law, bugs in killed.items())]
    )


if __name__ == "__main__":
    print(table())
