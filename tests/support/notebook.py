"""Run a notebook of the examples; as a program, keep what its cells show.

``HEARSAY_URL=… HEARSAY_READ_TOKEN=… python -m tests.support.notebook answers``, with what a demo
that runs prints, and ``python -m tests.support.notebook learn``, which needs nothing.
"""

from __future__ import annotations

import ast
import io
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def code_cells(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that a kernel runs."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(
    notebook: Mapping[str, Any], names: dict[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield each cell with what it prints and what its last expression is worth, in order.

    Args: names: takes what the cells define.
    """
    names = {} if names is None else names
    for cell in code_cells(notebook):
        *before, last = ast.parse("".join(cell["source"])).body
        value = None
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(ast.Module(before, []), cell["id"], "exec"), names)  # noqa: S102  # our own file
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)  # noqa: S307
            else:
                exec(compile(ast.Module([last], []), cell["id"], "exec"), names)  # noqa: S102
        yield cell, printed.getvalue(), value


def outputs_of(number: int, printed: str, value: Any) -> list[dict[str, Any]]:
    """Return the outputs that a kernel keeps of a cell."""
    outputs: list[dict[str, Any]] = []
    if printed:
        text = printed.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        result = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        outputs.append({**result, "data": data})
    return outputs


def main(name: str) -> None:
    """Put what every cell shows into the notebook called *name*."""
    path = EXAMPLES / f"{name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, (cell, printed, value) in enumerate(shown(notebook), 1):
        cell["execution_count"] = number
        cell["outputs"] = outputs_of(number, printed, value)
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
