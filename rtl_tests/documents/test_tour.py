"""The notebook runs from its first cell to its last."""

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

TOUR = Path(__file__).parents[2] / "docs" / "tour.ipynb"


def outputs(cell):
    """Return the media types of the output of a cell."""
    return {kind for output in cell.outputs for kind in output.get("data", {"text": 0})}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tour(tmp_path):
    """Every cell of the notebook runs and has an output."""
    notebook = nbformat.read(TOUR, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [outputs(cell) for cell in code]
    assert all(shown)
    assert {"text/html", "image/svg+xml"} <= shown[0]
    assert sum("text/html" in kinds for kinds in shown) >= 4
    assert "passed" in str(code[3].outputs)


def test_tour_is_stored_without_outputs():
    """The notebook is stored without outputs, which would come from one machine."""
    notebook = nbformat.read(TOUR, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
