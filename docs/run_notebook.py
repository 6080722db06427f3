"""Run the cells of a notebook in this process and keep what they show, without Jupyter.

    python docs/run_notebook.py docs/notebooks/measure-and-compare.ipynb           writes the outputs
    python docs/run_notebook.py docs/notebooks/measure-and-compare.ipynb --check   runs the cells only

A cell shows what it prints, and the value of its last line as text and, where it has that form, as HTML.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def shown(source: str, variables: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; return its outputs as a notebook keeps them. Raises what the cell raises."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), variables)  # noqa: S102  it is what this is for
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), variables)  # noqa: S307  as above
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = lines(value._repr_html_())
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def lines(text: str) -> list[str]:
    """Return the lines of ``text`` with their ends, as a notebook has them."""
    return text.splitlines(keepends=True)


def main(arguments: list[str]) -> int:
    """Run the notebook that is named first; write its outputs unless ``--check`` is given."""
    path, variables = Path(arguments[0]), {"__name__": "__main__"}
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = shown("".join(cell["source"]), variables)
    if "--check" not in arguments:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
