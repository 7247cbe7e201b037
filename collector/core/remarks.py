"""Remarks: what must be known beside the numbers of an answer, and why one is missing.  Pure.

A remark is a value with a code, by which programs and other rooms know it, and with the metric and
the group that it is about.  Its words are made here, once, of a code and its parameters: nothing
compares them, takes them apart, or puts the name of the metric into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class Code(StrEnum):
    """What a remark says."""

    IN_PROGRESS = "in_progress"
    NOT_COUNTED = "not_counted"
    SAMPLE = "sample"
    FURTHEST_STEP = "furthest_step"
    REPORTS_OF_RECORDS = "reports_of_records"
    EARLIER_COUNTED = "earlier_counted"
    EARLIER_LEFT_OUT = "earlier_left_out"
    NO_REPORTS = "no_reports"
    NOT_PUBLISHED = "not_published"
    SENT_LATER = "sent_later"
    NO_EARLIER_REPORTS = "no_earlier_reports"
    DEFINITION = "definition"
    SOURCES = "sources"
    KEYS = "keys"
    PRUNED = "pruned"
    OTHER_GROUPS = "other_groups"
    WITHHELD = "withheld"
    EXCLUSION = "exclusion"
    EXCLUDED = "excluded"
    EXCLUDED_LATER = "excluded_later"
    IMPOSSIBLE = "impossible"
    CHANGED_SUDDENLY = "changed_suddenly"
    NOT_HONEST = "not_honest"
    PICKED = "picked"
    CHANGE = "change"
    TOO_SHORT = "too_short"
    ONLY_REPORTING = "only_reporting"
    PERIODS = "periods"
    LOOK_ONCE = "look_once"
    NOT_DRAWN = "not_drawn"
    TO_SETTLE = "to_settle"
    NOTHING_TO_COMPARE = "nothing_to_compare"
    UNEVEN = "uneven"
    ONCE_EACH = "once_each"
    OTHER_DEVICES = "other_devices"
    COLLECTED_APART = "collected_apart"
    OF_ANSWER = "of_answer"
    DRAWN_ATTRIBUTE = "drawn_attribute"
    TABLES = "tables"
    TABLE = "table"
    ALL_TABLES = "all_tables"
    # why a row has no number
    TOO_FEW = "too_few"
    NOT_PRECISE = "not_precise"
    NO_HOLDERS = "no_holders"
    MIXED = "mixed"
    NONE_ABOUT = "none_about"
    BOUNDS = "bounds"
    APART = "apart"
    NO_GROUP = "no_group"
    NO_BASE = "no_base"
    UNBOUNDED = "unbounded"
    NO_OTHERS = "no_others"
    TOO_RARE = "too_rare"
    OUT_OF_REACH = "out_of_reach"
    TOO_MANY_CELLS = "too_many_cells"
    TOO_FEW_GROUPS = "too_few_groups"
    # what must be known beside the number of a row
    DEFINITIONS = "definitions"
    DEFINITIONS_DRAWN = "definitions_drawn"
    WITHOUT_OTHERS = "without_others"
    EXACT = "exact"
    AVERAGE = "average"
    OF_EXPECTED = "of_expected"
    AT_LEAST = "at_least"
    IF_ALIKE = "if_alike"
    OF_DRAWN = "of_drawn"
    SMOOTH = "smooth"
    CUT = "cut"
    LIKELY = "likely"
    PERHAPS_ZERO = "perhaps_zero"
    NOISE = "noise"
    BOUND = "bound"
    NO_CHANGE = "no_change"
    POOLED = "pooled"
    TOGETHER = "together"
    SUM_OF_REPORTS = "sum_of_reports"
    SUM_OF_EPOCHS = "sum_of_epochs"
    SUM_OF_DRAWN = "sum_of_drawn"
    RANK = "rank"
    UNRANKED = "unranked"
    DEVIATION = "deviation"
    NOTE = "note"


WORDS: Final[Mapping[Code, str]] = MappingProxyType(
    {
        Code.IN_PROGRESS: "in progress: the last period is not complete",
        Code.NOT_COUNTED: "{days} lies between both ranges and is not counted",
        Code.SAMPLE: "{samples}; {held_for}",
        Code.FURTHEST_STEP: (
            "an item is the furthest step of a device; ask for funnel to see who reached it"
        ),
        Code.REPORTS_OF_RECORDS: (
            "n counts all reports, and each is about one attribute, drawn by chance; crosstab tells"
            " how many are about which"
        ),
        Code.EARLIER_COUNTED: "{reports} under earlier definitions are counted, too",
        Code.EARLIER_LEFT_OUT: (
            "{reports} under earlier definitions are left out; ask for them by their definition:"
            " {definitions}"
        ),
        Code.NO_REPORTS: "no reports for these days",
        Code.NOT_PUBLISHED: (
            "no reports for these days in the published version {version}; a later one may have"
            " some"
        ),
        Code.SENT_LATER: ("reports of a period are sent when it is over, and the last one is not"),
        Code.NO_EARLIER_REPORTS: "{first} to {last}: no reports",
        Code.DEFINITION: (
            "only reports under definition {definition} are counted, of mechanism {mechanism}"
        ),
        Code.SOURCES: "reports that are {sources} are left out, as asked",
        Code.KEYS: (
            "reports that did {keys} are left out, as asked; keys with fewer than {least} reports"
            " go together, and reports whose key is not known are {unknown}"
        ),
        Code.PRUNED: (
            "what was reported up to {last}{whose} was deleted by an operator (pruned), {count} of"
            " {epochs} epochs of the window"
        ),
        Code.OTHER_GROUPS: (
            "{name} is {groups:,} groups with fewer than {least:,} reports each, together"
        ),
        Code.WITHHELD: (
            "{few:,} of {n:,} reports are in groups with fewer than {least:,}, which have no"
            " number; a total of the other rows is off by at most {off}"
        ),
        Code.EXCLUSION: "{reports} are {fate}: {reason}",
        Code.EXCLUDED: "{reports} left out by exclusions{along}",
        Code.EXCLUDED_LATER: (
            "{reports} are in this version, which stays as it was, and left out where none is"
            " named: {reason}"
        ),
        Code.IMPOSSIBLE: "impossible for honest devices: {what}; see poisoning",
        Code.CHANGED_SUDDENLY: "changed suddenly: {what}; the truth may have, or fakes began",
        Code.NOT_HONEST: (
            "not what honest devices send: {what}; by chance once in {epochs:,.0f} epochs"
        ),
        Code.PICKED: (
            "{misleading} of the {shown} shares shown are probably {off}: what is picked as the"
            " {end} of {items:,} is so in part by noise; together they show {values:.3g} %, and"
            " {likelier:.3g} % is likelier; the table shows the likelier share of each, for which"
            " the same interval holds"
        ),
        Code.CHANGE: (
            "{what} changed {at} from {before} to {after} (difference {least} to {most}, {chance})"
        ),
        Code.TOO_SHORT: "there are fewer than {stretches} stretches of time with reports",
        Code.ONLY_REPORTING: (
            "only devices that sent a report are counted: not those without consent, outside the"
            " sample or out of budget. Anyone with a write key can add reports"
        ),
        Code.PERIODS: (
            "a device reports once in each period of a metric, and again if its definition changes:"
            " a metric that is asked every week counts the devices of a week, and one that is asked"
            " every 28 days those of 28 days"
        ),
        Code.LOOK_ONCE: (
            "intervals and p-values are for one look, on a day that was chosen before the"
            " experiment began; of experiments without any effect that are looked at on each of 28"
            " days, up to 28 in 100 show a difference on some day"
        ),
        Code.NOT_DRAWN: (
            "arms that were not drawn by lot differ in other things, too, which may be what makes"
            " the difference"
        ),
        Code.TO_SETTLE: "to settle {aim} {times:g} times in 10 takes {each}",
        Code.NOTHING_TO_COMPARE: "there is nothing to compare: only {which} has reports{more}",
        Code.UNEVEN: (
            "some groups have more of their reports on later days than others, so a change over"
            " time may show as a difference between them; take a shorter stretch of time, or break"
            " down by day or week"
        ),
        Code.ONCE_EACH: "taken for granted: no device reported in more than one period",
        Code.OTHER_DEVICES: (
            "{first} has {over:,} reports and {second} {under:,}, so the means are of different"
            " devices; of = totals divides the sums"
        ),
        Code.COLLECTED_APART: "{first} and {second}: {why}",
        Code.OF_ANSWER: "shares are of the devices with each answer to {answer}, not of all",
        Code.DRAWN_ATTRIBUTE: (
            "n is of the reports about the attribute, which each device drew by chance"
        ),
        Code.TABLES: "associations of {tables} tables are in meta.facts.association",
        Code.TABLE: "how far both answers go together{place}: {strength}",
        Code.ALL_TABLES: "p, the chance of as much by noise, counts all {tables} tables (Holm)",
        Code.TOO_FEW: "not enough reports: {n:,} of at least {least:,} needed; {missing}",
        Code.NOT_PRECISE: "not precise enough: {width}; {missing}",
        Code.NO_HOLDERS: "not enough reports: whether any device holds the key is not sure",
        Code.MIXED: "reports of {few} of {names} have no mean together; break down by {names}",
        Code.NONE_ABOUT: "not enough reports: none is about this attribute",
        Code.BOUNDS: ("no more than bounds is known: reports do not tell which devices came again"),
        Code.APART: (
            "the two were collected apart, so no more than bounds of both together is known"
        ),
        Code.NO_GROUP: (
            "not enough reports: whether any device is in the group before is not sure"
        ),
        Code.NO_BASE: "no ratio: the control may be 0",
        Code.UNBOUNDED: (
            "unbounded: the number that is divided by may be 0; a longer window or fewer groups"
            " make it surer"
        ),
        Code.NO_OTHERS: "nothing else beside it has enough reports",
        Code.TOO_RARE: (
            "not enough reports: of {n:,} only strings that {percent:.3g} % hold are found;"
            " {needed:,} are needed for a share of {share:.3g} %"
        ),
        Code.OUT_OF_REACH: (
            "a share of {share:.3g} is out of reach of a search with so many characters"
        ),
        Code.TOO_MANY_CELLS: "the table has more than {most} cells",
        Code.TOO_FEW_GROUPS: (
            "not enough reports: fewer than two rows or columns are surely above zero"
        ),
        Code.DEFINITIONS: "over several definitions of the metric, each by its reports",
        Code.DEFINITIONS_DRAWN: (
            "over several definitions of the metric, each by the devices that its reports stand for"
        ),
        Code.WITHOUT_OTHERS: "without {few} reports under another definition, too few alone",
        Code.EXACT: "exact: counted in the clear",
        Code.AVERAGE: "average of {periods} periods, each counted in the clear",
        Code.OF_EXPECTED: "{percent:.3g} % of the {expected:,} expected",
        Code.AT_LEAST: "at least {percent:.3g} % of the {expected:,} expected",
        Code.IF_ALIKE: "of devices, if each reports as often",
        Code.OF_DRAWN: "counted in the clear among the devices drawn; the interval is of all",
        Code.SMOOTH: 'assumes a smooth population: shape = "smooth" is declared',
        Code.CUT: (
            "longer strings that begin with it are counted, too: strings are cut to {size} bytes"
        ),
        Code.LIKELY: "likely, not sure: {percent:.0f} % of such strings are expected to be noise",
        Code.PERHAPS_ZERO: "not distinguishable from zero",
        Code.NOISE: "noise alone may be the reason",
        Code.BOUND: "the interval is a bound: it is at least as wide as its level asks for",
        Code.NO_CHANGE: "no detectable change",
        Code.POOLED: ("drawn towards the mean of all segments; the interval is of the raw number"),
        Code.TOGETHER: "groups that have too few reports of their own, together",
        Code.SUM_OF_REPORTS: "the sum over the devices that reported, not over all there are",
        Code.SUM_OF_EPOCHS: (
            "the sum over the reports, of which a device may have sent one in each of {epochs}"
            " epochs"
        ),
        Code.SUM_OF_DRAWN: (
            "scaled up from the devices of the sample to all that would have reported"
        ),
        Code.RANK: "rank {ranks}",
        Code.UNRANKED: "rank unsure: too few reports",
        Code.DEVIATION: "standard deviation {middle} {unit}, interval {low} to {high}",
        Code.NOTE: "{text}",
    }
)


class Remark(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What must be known beside numbers, as an answer says it: its text names no metric.

    Two are equal if they say the same of the same.
    """

    code: Code
    text: str
    metric: str = ""  # the address of the one that it is about; "": it is about none alone
    group: str = ""  # of the metric: values of dimensions, or a dimension; "": of all

    def __str__(self) -> str:
        """Return it as a line that names what it is about."""
        return self.of(self.metric)

    def of(self, name: str) -> str:
        """Return it as a line, where the metric is called *name*."""
        about = f"{name} ({self.group})" if name and self.group else name or self.group
        return f"{about}: {self.text}" if about else self.text


def remark(code: Code, metric: str = "", group: str = "", **parameters: object) -> Remark:
    """Return the remark of a *code* with the *parameters* of its words."""
    return Remark(code, WORDS[code].format(**parameters), metric, group)


def read(fields: Mapping[str, str]) -> Remark:
    """Return a remark of the API; one of a newer collector, whose code is not known, is a note."""
    text = fields["text"]  # first: what has none is no remark, and raises TypeError
    code = Code(fields["code"]) if fields.get("code") in set(Code) else Code.NOTE
    return Remark(code, text, fields.get("metric", ""), fields.get("group", ""))
