"""The notebook of the examples runs as it is, but for fewer training steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")


def outputs_of(cell: Any) -> dict[str, str]:
    """The outputs of a cell by their type, those shown last."""
    return {kind: text for output in cell.outputs for kind, text in output.get("data", {}).items()}


@pytest.mark.models
def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    cells = {cell.source: cell for cell in notebook.cells if cell.cell_type == "code"}
    for cell in cells.values():
        cell.source = cell.source.replace("STEPS = 100", "STEPS = 2")
    assert sum("STEPS = 2" in cell.source for cell in cells.values()) == 1
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    assert not list(tmp_path.iterdir()), "nothing is written beside the notebook"
    shown = {last: outputs_of(cell) for cell in cells.values() for last in cell.source.splitlines()[-1:]}
    assert "100 sentences from memory; mentions: LOC 62" in shown["gold"]["text/html"]
    assert "100 valid sentences" in shown["entaug.check(gold)"]["text/html"]
    assert "<ins>" in shown["entaug.formats.pair_with_sources(new, gold)[0]"]["text/html"], "differences are marked"
    assert "linear: 280 sentences, 5 types, 2 steps" in next(
        html["text/html"] for last, html in shown.items() if last.startswith("entaug.train(")
    )
    assert "EVENT" in shown["scores"]["text/html"]
    assert "2 sentences from memory" in shown["labelled"]["text/html"]
    said = [output.text for cell in cells.values() for output in cell.outputs if output.output_type == "stream"]
    assert not [text for text in said if "entaug" in text], "no warning of ours"
