"""An audit of another program refutes one that cheats, and stops at one that answers nonsense."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from client_sdk.core.randomness import system_randomness
from client_sdk.registry import Registry
from collector.audit.audit import FAILS, cases_of
from collector.audit.device import Device, audit_device, value_of
from collector.cli import main
from collector.core.errors import ChildError
from tests.client_sdk_ts.registries import EVERY_TYPE
from tests.support.device.registries import BOOLEAN, CATEGORY, HEAD, NUMBER, table

REGISTRY: Final = HEAD + table("dark", BOOLEAN) + table("plan", CATEGORY) + table("took", NUMBER)
# A device in Python, as a program that knows no more of the audit than its protocol.
HONEST: Final = """
import json, sys
from client_sdk.core.randomness import system_randomness
from client_sdk.registry import Registry
registry = Registry.from_file({path!r})
for line in sys.stdin:
    line = json.loads(line)
    metric = registry.metric(line["metric"])
    payload = metric.mechanism.randomize(metric.encode(line["value"]), system_randomness())
    print(json.dumps({{"payload": payload.hex()}}), flush=True)
"""
TRUTH: Final = ("payload.hex()", '"0%d" % ["free", "pro", "team"].index(line["value"])')
DRAWS: Final = 2_000  # a side; honest devices fail with a chance of 1e-9 whatever they are


def command(folder: Path, program: str) -> str:
    """Write *program* as a file of *folder*, and return how to start it."""
    path = folder / "device.py"
    path.write_text(program, "utf-8")
    return shlex.join([sys.executable, str(path)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "metrics.toml"
    made.write_text(REGISTRY, "utf-8")
    return made


def test_an_honest_device_holds_what_its_registry_claims(tmp_path: Path, path: Path) -> None:
    metrics = list(Registry.from_file(path))

    with Device(command(tmp_path, HONEST.format(path=str(path)))) as device:
        audits = audit_device(device, metrics, DRAWS)

    assert [found.mechanism for found in audits] == ["dark", "plan", "took"]
    assert [found.mechanism for found in audits if found.verdict == FAILS] == []


@pytest.mark.parametrize("planted", [TRUTH, ("system_randomness()", "Biased()")])
def test_a_device_that_cheats_is_found(
    tmp_path: Path, path: Path, planted: tuple[str, str]
) -> None:
    """One sends the truth; the other draws true where truth is a coin of ε, twice in a row."""
    biased = (
        "class Biased:\n    def bernoulli(self, p):\n        d = system_randomness()\n"
        "        return d.bernoulli(p) or d.bernoulli(p)\n"
        "    def uniform(self, n):\n        return system_randomness().uniform(n)\n"
    )
    honest = HONEST.format(path=str(path))
    program = honest.replace(*planted, 1).replace("for line", biased + "for line")
    metric = Registry.from_file(path).metric("plan")

    with Device(command(tmp_path, program)) as device:
        [found] = audit_device(device, [metric], 20_000)

    assert found.verdict == FAILS


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('print(\'{"payload": "00"}\', flush=True)', "took: the device must answer"),
        ('print(\'{"error": "no such metric"}\', flush=True)', "no such metric"),
        ('print("[" * 9000, flush=True)', "4 hexadecimal digits"),
        ("sys.exit(1)", "must answer each line within"),
        ("import time; time.sleep(60)", "must answer each line within 1 s"),
    ],
)
def test_a_program_that_answers_no_payload_ends_the_audit(
    tmp_path: Path, path: Path, answer: str, said: str
) -> None:
    program = f"import sys\nfor line in sys.stdin:\n    {answer}\n"
    metric = Registry.from_file(path).metric("took")

    with (
        pytest.raises(ChildError) as caught,
        Device(command(tmp_path, program), patience=1.0) as device,
    ):
        audit_device(device, [metric], DRAWS)

    assert said in str(caught.value)


def test_every_type_has_a_value_for_each_side_of_every_pair() -> None:
    """Law: what the program is asked for is what the event is about."""
    for metric in Registry.from_text(EVERY_TYPE):
        for case in cases_of(metric.mechanism, system_randomness(), 4):
            for encoded in (case.likely, case.unlikely):
                assert metric.encode(value_of(metric, encoded)) == encoded


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "x"], "--device and --registry go together"),
        (["--metric", "dark"], "--device and --registry go together"),
        (["--device", "x", "--registry", "{path}", "--epsilon", "2"], "what its registry says"),
        (["--device", "/no/such", "--registry", "{path}"], "cannot be started"),
        (["--device", "", "--registry", "{path}"], "cannot be started"),
        (["--device", "x", "--registry", "{path}", "--metric", "no"], "must be one of dark"),
    ],
)
def test_the_command_says_what_is_wrong(path: Path, words: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["audit", *(word.format(path=path) for word in words)])

    assert done.exit_code != 0
    assert said in done.output


@pytest.mark.parametrize(("planted", "status"), [(None, 0), (TRUTH, 1)])
def test_the_exit_status_says_whether_the_device_failed(
    tmp_path: Path, path: Path, planted: tuple[str, str] | None, status: int
) -> None:
    program = HONEST.format(path=str(path)).replace(*(planted or ("", "")), 1)
    words = ["--device", command(tmp_path, program), "--registry", str(path)]

    done = CliRunner().invoke(main, ["audit", *words, "--metric", "plan", "--draws", "2000"])

    assert done.exit_code == status
    assert done.output.splitlines()[1].split()[0] == "plan"
