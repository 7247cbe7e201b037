"""Laws of the container image: hash-pinned, without build tools, not root, stopped in order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "collector" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
FINAL_STAGE = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


def instructions(word: str, text: str = DOCKERFILE) -> list[str]:
    """Return the arguments of every instruction *word*, continuation lines joined."""
    return re.findall(rf"^{word} +(.*)$", text, re.MULTILINE)


def test_the_image_runs_as_the_user_that_compose_names() -> None:
    (user,) = instructions("USER", FINAL_STAGE)

    assert {user} == {COMPOSE["services"][name]["user"] for name in ("web", "worker")}


def test_the_image_starts_hearsay_itself_so_that_it_gets_the_signals() -> None:
    (command,) = instructions("CMD", FINAL_STAGE)

    assert json.loads(command)[0] == "hearsay"
    assert instructions("ENTRYPOINT") == []
    assert instructions("STOPSIGNAL", FINAL_STAGE) == ["SIGTERM"]


def test_the_image_has_a_health_check_without_a_shell() -> None:
    (check,) = instructions("HEALTHCHECK", FINAL_STAGE)

    assert json.loads(check[check.index("[") :])[0] == "python"


def test_the_final_image_is_only_copied_to_so_that_no_build_tool_stays() -> None:
    assert instructions("RUN", FINAL_STAGE) == []
    assert instructions("COPY", FINAL_STAGE) == ["--from=build /opt/hearsay /opt/hearsay"]


def test_the_stages_share_one_base_with_a_tag_that_names_its_python() -> None:
    bases = {base.split()[0] for base in instructions("FROM")}

    assert bases == {"python:3.11-slim-bookworm"}


def test_the_image_installs_nothing_that_is_not_known_by_its_hash() -> None:
    installs = re.findall(r"pip [^&\n]*install[^&\n]*", DOCKERFILE)

    assert len(installs) == 2
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)


def test_the_builder_sees_only_what_the_image_needs() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}

    assert rules[0] == "*"
    assert allowed == {"pyproject.toml", "README.md", "LICENSE", "client_sdk", "collector"}
    assert all((ROOT / path).exists() for path in allowed)
