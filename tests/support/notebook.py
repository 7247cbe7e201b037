"""Run examples/answers.ipynb; as a program, keep what its cells show, of a demo that runs.

``HEARSAY_URL=… HEARSAY_READ_TOKEN=… python -m tests.support.notebook``, with what the demo prints.
"""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

NOTEBOOK: Final = Path(__file__).parents[2] / "examples" / "answers.ipynb"


def code_cells(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that a kernel runs."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(notebook: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield each cell with what it prints and what its last expression is worth, in order."""
    names: dict[str, Any] = {}
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


def main() -> None:
    """Put what every cell shows into the notebook."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for number, (cell, printed, value) in enumerate(shown(notebook), 1):
        cell["execution_count"] = number
        cell["outputs"] = outputs_of(number, printed, value)
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
