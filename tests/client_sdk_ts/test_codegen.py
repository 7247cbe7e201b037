"""Typed metrics in TypeScript: right programs compile and record, and no wrong line compiles."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from client_sdk.core.errors import RegistryError
from client_sdk.mechanisms import names
from client_sdk.registry import Registry
from client_sdk.registry.types import kinds
from collector.cli import main
from collector.planning.compilation import compiled
from collector.planning.typescript import (
    _TYPES,
    MISSING,
    MISSING_TYPES,
    PACKAGE,
    typescript_module,
)
from tests.client_sdk_ts.registries import EVERY_TYPE
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    HEAD,
    NUMBER,
    PAIR,
    RECORD,
    SET,
    TASTE,
    VECTOR,
    table,
)
from tests.support.node import PACKAGE as FOLDER
from tests.support.node import Node

START: Final = """
import { Client } from "hearsay-telemetry";
import { mechanisms, type Metrics, registry } from "./metrics.js";

const client = new Client<Metrics>({
  endpoint: "https://stats.example.org", writeKey: "a-write-key-of-16", registry, mechanisms,
  consent: "granted", store: "session", dryRun: true, segment: { platform: "mac" },
});
"""
RIGHT: Final = (
    ("dark", "true"),
    ("plan", '"pro"'),
    ("theme", '"any text"'),
    ("opens", "31"),
    ("took", "3.5"),
    ("tools", '["a", "b"]'),
    ("tools", 'new Set(["a"] as const)'),
    ("fonts", '["Comic Sans"]'),
    ("shop", "null"),
    ("place", "[7.4, 46.9]"),
    ("back", '["week 1"]'),
    ("person", '{ sex: "male", income: "low" }'),
    ("hours", "{ video: 3, chess: 0.5 }"),
    ("search", '"any text"'),
)
WRONG: Final = (
    *(
        'client.record("plna", "pro");',
        'client.record("plan", "prO");',
        'client.record("plan", 1);',
    ),
    *('client.record("plan");', 'client.record("dark", "true");', 'client.record("opens", "3");'),
    *('client.record("place", [7]);', 'client.record("hours", { vide: 3 });'),
    *('client.record("hours", { video: "3" });', 'client.record("person", { sex: "male" });'),
    *('client.record("tools", "a");', 'client.record("tools", ["x"]);'),
    *('client.record("tools", new Set(["x"]));', 'client.record("theme", 3);'),
    *('client.record("shop", undefined);', 'client.explain("plna");', "client.record(3, 3);"),
    *('client.record("took", [3]);', "const text: string = client.stats().uploaded;"),
    'client.setConsent("grantd");',
)
KEY: Final = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"  # of RFC 8032
ODD: Final = ["it's", 'say "hi"', "back\\slash", "ε or ∞", "*/ alert(1) /*", "`${x}`"]


def strict_for(lib: str) -> dict[str, Any]:
    """Return the settings of a strict project that checks the types of what it installed, too."""
    return {
        "compilerOptions": {
            "target": lib,
            "module": "NodeNext",
            "lib": [lib, "DOM"],
            "types": [],
            "strict": True,
            "exactOptionalPropertyTypes": True,
            "noUncheckedIndexedAccess": True,
            "verbatimModuleSyntax": True,
            "noEmit": True,
        },
        "include": ["*.ts"],
    }


def project(folder: Path, registry: Registry, lib: str = "ES2022", **programs: str) -> Path:
    """Write a project that has the package installed, the module made for *registry*, and more."""
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / PACKAGE).symlink_to(FOLDER)
    (folder / "package.json").write_text('{"type": "module"}', "utf-8")
    (folder / "tsconfig.json").write_text(json.dumps(strict_for(lib)), "utf-8")
    (folder / "metrics.ts").write_text(typescript_module(registry), "utf-8")
    for name, text in programs.items():
        (folder / f"{name}.ts").write_text(text, "utf-8")
    return folder


def faults(node: Node, folder: Path) -> list[tuple[str, int]]:
    """Return file and line of every error of the compiler."""
    done = node.tool("tsc", "-p", str(folder), "--pretty", "false")
    found = re.findall(r"^(\S+)\((\d+),\d+\): error TS", done.stdout, re.MULTILINE)
    assert bool(done.returncode) == bool(found), done.stdout
    return [(Path(file).name, int(line)) for file, line in found]


def evaluated(node: Node, folder: Path, program: str) -> Any:
    """Bundle and run a program of *folder*, and return the JSON that it prints."""
    bundle = folder / "bundle.mjs"
    words = ("--bundle", "--format=esm", "--platform=neutral", f"--outfile={bundle}")
    done = node.tool("esbuild", str(folder / program), *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    ran = node.run(str(bundle), cwd=folder, variables={"HEARSAY_TELEMETRY": "1"})
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def every_type() -> Registry:
    return Registry.from_text(EVERY_TYPE)


def test_right_values_of_every_kind_compile_and_are_recorded(
    node: Node, tmp_path: Path, every_type: Registry
) -> None:
    """By an older library too, in which the types of the package are checked."""
    calls = "".join(f'client.record("{name}", {value});\n' for name, value in RIGHT)
    end = "client.flush().then(() => console.log(JSON.stringify(client.stats())));\n"
    folder = project(tmp_path, every_type, "ES2020", right=START + calls + end)

    assert faults(node, folder) == []
    stats = evaluated(node, folder, "right.ts")
    assert stats["unknown_metric"] == stats["invalid_value"] == stats["internal"] == 0
    assert stats["recorded"] >= 3  # the caps allow no more at once


def test_every_wrong_line_is_an_error_and_no_other(
    node: Node, tmp_path: Path, every_type: Registry
) -> None:
    """Law: marked as wrong all compile; without the marks each is an error of its own line."""
    marked = START + "".join(f"// @ts-expect-error\n{line}\n" for line in WRONG)
    bare = START + "".join(f"{line}\n" for line in WRONG)
    folder = project(tmp_path, every_type, marked=marked, bare=bare)
    first = START.count("\n") + 1

    assert faults(node, folder) == [("bare.ts", first + number) for number in range(len(WRONG))]


def test_the_module_holds_the_registry_and_imports_what_it_needs_only(
    node: Node, tmp_path: Path, every_type: Registry
) -> None:
    program = (
        'import { mechanisms, registry } from "./metrics.js";\n'
        "console.log(JSON.stringify([mechanisms.map((m) => m.name), registry]));\n"
    )
    folder = project(tmp_path, every_type, all=program)

    mechanisms, text = evaluated(node, folder, "all.ts")

    types = {metric.type for metric in every_type} - {"boolean", "category"}
    needed = [*sorted(types), "aggregates", "permanent"]
    assert mechanisms == sorted({metric.mechanism_name for metric in every_type}) + needed
    assert json.loads(text) == json.loads(compiled(every_type))


@pytest.mark.parametrize(
    ("parts", "head", "fields"),
    [
        ([], HEAD, {}),
        (["aggregates"], HEAD, {"aggregate": '"any"'}),
        (["permanent"], HEAD, {"longitudinal": '"permanent"'}),
        (["panel"], HEAD + '[panel]\nweek = "8"\n', {}),
        (
            ["retirement"],
            HEAD.replace('"notes"', f'{{ name = "notes", retire_key = "{KEY}" }}'),
            {},
        ),
    ],
)
def test_a_module_makes_a_client_that_lacks_no_part_and_has_no_other(
    node: Node, tmp_path: Path, parts: list[str], head: str, fields: dict[str, str]
) -> None:
    registry = Registry.from_text(head + table("a", BOOLEAN, **fields))
    start = START.replace(', segment: { platform: "mac" }', "")
    program = (
        start + "console.log(JSON.stringify(mechanisms.map((m) => m.name)));\nclient.close();\n"
    )
    folder = project(tmp_path, registry, parts=program)

    assert evaluated(node, folder, "parts.ts")[1:] == parts


def test_odd_texts_stay_texts(node: Node, tmp_path: Path) -> None:
    """Neither ends its string nor the comment that explains the metric."""
    hostile = json.dumps("*/ throw 1; /* `${x}` " + "long " * 40)
    odd = json.dumps(ODD, ensure_ascii=False)
    registry = Registry.from_text(
        HEAD
        + table("a", CATEGORY, values=odd, title=hostile, question=hostile)
        + table("b.c", SET, values=odd)
        + table("d", PAIR, parts='{ "2nd" = ["x", "it\'s"], type = ["x", "y"] }')
    )
    values = [f'client.record("a", {json.dumps(label)});' for label in ODD]
    right = (
        START
        + "\n".join(values)
        + f'\nclient.record("b.c", {json.dumps(ODD)});\n'
        + 'client.record("d", { "2nd": "it\'s", type: "y" });\n'
        + "// @ts-expect-error\n"
        + 'client.record("d", { "2nd": "it\'s" });\n'
    )
    folder = project(tmp_path, registry, right=right)

    assert faults(node, folder) == []
    assert max(map(len, typescript_module(registry).split("export const")[0].splitlines())) <= 300


def test_every_type_of_values_has_a_type_in_typescript() -> None:
    ours = {kind for kind in kinds().values() if kind.__module__.startswith("client_sdk.")}
    ours = {kind for kind in ours if not MISSING_TYPES.intersection(kind.types)}

    assert len(ours) >= 10
    assert {kind.python_type for kind in ours} <= set(_TYPES)


def test_the_mechanisms_that_typescript_has_are_those_of_its_folder() -> None:
    files = {path.stem for path in (FOLDER / "src" / "mechanisms").glob("*.ts")}

    assert {name for name in names() if name not in files} == MISSING


def test_the_types_that_typescript_has_are_those_of_the_registry() -> None:
    files = {path.stem for path in (FOLDER / "src" / "types").glob("*.ts")}

    # tests of added types declare some of their own
    ours = {name for name, kind in kinds().items() if kind.__module__.startswith("client_sdk.")}

    assert files | {"boolean", "category"} | MISSING_TYPES == ours
    assert ours - MISSING_TYPES == {metric.type for metric in Registry.from_text(EVERY_TYPE)}
    assert not files & MISSING_TYPES


# A metric with each mechanism, and of each type, that the device in TypeScript does not have.
REFUSED: Final = {
    **{
        f"mechanism={name}": table("a", BOOLEAN, mechanism=f'"{name}"')
        for name in ("cms", "dbitflip", "hcms", "loloha", "rappor")
    },
    "mechanism=discrete_gaussian": table("a", NUMBER, mechanism='"discrete_gaussian"'),
    **{
        f"type={name}": table("a", fields)
        for name, fields in (("record", RECORD), ("taste", TASTE), ("vector", VECTOR))
    },
}
NEW_CLIENT: Final = """
const { Client, memoryStore } = await import("./dist/index.js");
const { everything: mechanisms } = await import("./dist/all.js");
const [endpoint, writeKey] = ["https://collector.example", "key"];
const message = (registry) => {
  try {
    new Client({ endpoint, writeKey, registry, mechanisms, consent: "granted", store: memoryStore() });
  } catch (error) {
    return error.message;
  }
};
console.log(JSON.stringify(%s.map(message)));
"""  # noqa: E501 - a program


def test_command_and_device_refuse_what_typescript_has_not_in_the_same_words(node: Node) -> None:
    registries = [Registry.from_text(HEAD + text) for text in REFUSED.values()]

    messages = node.evaluate(NEW_CLIENT % json.dumps([compiled(each) for each in registries]))

    for what, registry, message in zip(REFUSED, registries, messages, strict=True):
        with pytest.raises(RegistryError) as refused:
            typescript_module(registry)
        assert str(refused.value) == message
        assert message.startswith(f"metrics.a.{what}: ")
    types = {what for what in REFUSED if what.startswith("type=")}
    assert types == {f"type={name}" for name in MISSING_TYPES}


def test_the_command_writes_the_module(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(EVERY_TYPE, "utf-8")
    words = ["registry", "codegen", str(path), "--language", "typescript"]

    done = CliRunner().invoke(main, [*words, "--output", str(tmp_path / "metrics.ts")])

    assert (done.exit_code, done.output) == (0, "")
    text = typescript_module(Registry.from_text(EVERY_TYPE))
    assert (tmp_path / "metrics.ts").read_text("utf-8") == text
