"""Runs the code cells of a notebook in one namespace, without Jupyter. ``python tests/notebook_runner.py NOTEBOOK …`` stores
what they print and draw in the notebook."""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def run(path: Path) -> list[list[dict[str, Any]]]:
    """Run the notebook in the current folder. Returns the outputs of each code cell, in the notebook's format."""
    import matplotlib

    matplotlib.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = json.loads(path.read_text())["cells"]
    return [_run_cell("".join(cell["source"]), namespace) for cell in cells if cell["cell_type"] == "code"]


def _run_cell(source: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell as a notebook does: the value of a last expression is shown, and so are the open figures. What
    ``nbody.show`` displays or returns is not stored."""
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    tree, last = ast.parse(source), None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        value = eval(compile(last, "cell", "eval"), namespace) if last else None
    outputs: list[dict[str, Any]] = []
    if lines := [line for line in printed.getvalue().splitlines(True) if not line.startswith("RFBOutputContext(")]:
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    for number in plt.get_fignums():
        buffer = io.BytesIO()
        plt.figure(number).savefig(buffer, format="png", dpi=70, bbox_inches="tight")
        data = {"image/png": base64.b64encode(buffer.getvalue()).decode()}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    if isinstance(value, Figure):
        data = {"image/png": base64.b64encode(value._repr_png_()).decode()}
        outputs.append({"output_type": "execute_result", "execution_count": None, "data": data, "metadata": {}})
    elif value is not None and not type(value).__module__.startswith(("matplotlib", "nbody.viewer", "jupyter_rfb")):
        data = {"text/plain": repr(value).splitlines(True)}
        outputs.append({"output_type": "execute_result", "execution_count": None, "data": data, "metadata": {}})
    return outputs


def main(paths: list[str]) -> None:
    """Run notebooks and store their outputs."""
    for path in map(Path, paths):
        path = path.resolve()
        notebook = json.loads(path.read_text())
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            outputs = iter(run(path))
            os.chdir(before)
        for number, cell in enumerate((c for c in notebook["cells"] if c["cell_type"] == "code"), 1):
            cell["outputs"], cell["execution_count"] = next(outputs), number
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
