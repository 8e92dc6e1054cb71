"""The command `draw`."""

import json
import sys
from xml.etree import ElementTree

import pytest
from helpers import check_refused

from torusfabric.cli import main
from torusfabric.draw.files import require_converter
from torusfabric.errors import MissingTool

SPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (
            ["compare", "2x2", "allgather", "--plot", "curves.eps"],
            "curves.svg or curves.svgz or curves.pdf or curves.png, not to curves.eps",
        ),
        (
            ["draw", "2x2", "allgather", "-o", "a.b.gz"],
            "a.svg or a.svgz or a.pdf or a.png, not to a.b.gz",
        ),
        (
            ["draw", "2x2", "allgather", "--moving", "0", "-o", "a.pdf"],
            "a.svg or a.svgz, not to a.pdf",
        ),
        (["animate", "2x2", "allgather", "-o", "a.gif"], "a.html or a.htm, not to a.gif"),
    ],
)
def test_a_drawing_is_called_what_it_is(capsys, tmp_path, monkeypatch, words, wanted):
    """A drawing whose file name has another ending is refused, with the allowed endings."""
    monkeypatch.chdir(tmp_path)
    said = check_refused(capsys, *words)
    assert f"Drawing must be written to a file such as {wanted}\n" in said
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("words", "algorithm", "seen"),
    [
        (["6x8", "allgather", "--algorithm", "hamiltonian"], "hamiltonian", "cycle 2: 48 links"),
        (["5x5", "allgather", "--algorithm", "one-packet"], "one-packet", "cycle 1: 15 links"),
        (["4x4x4", "allgather", "--algorithm", "hamiltonian"], "hamiltonian", "(3,·,·)"),
        (["7x7x7", "allgather", "--algorithm", "lee-code"], "lee-code", "round 4: 294 paths"),
        (
            ["arrowhead:3", "broadcast", "--algorithm", "wormhole-forest"],
            "wormhole-forest",
            "round 3: 96 paths",
        ),
    ],
)
def test_draw(capsys, tmp_path, words, algorithm, seen):
    """A checked schedule becomes a picture with a legend and all node numbers."""
    path = tmp_path / "picture.svg"
    assert main(["draw", *words, "-o", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["algorithm"], facts["checked"], facts["file"]) == (algorithm, True, str(path))
    texts = [e.text or "" for e in ElementTree.parse(path).getroot().iter(f"{SPACE}text")]
    assert any(seen in text for text in texts)
    numbers = {text for text in texts if text.isdigit()}
    assert numbers == set(map(str, range(facts["nodes"])))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["4x4", "allgather", "-o", "/nonexistent/x.svg"], "Folder /nonexistent cannot be written"),
        (["4x4", "allgather", "-o", "."], "File . cannot be written"),
        (["65x64", "allgather", "-o", "x.svg"], "Drawing must have at most 4096 nodes, not 4160"),
        (["4x4", "nonsense", "-o", "x.svg"], "Collective must be one of"),
        (["4x4", "allgather"], "-o/--output"),
    ],
)
def test_what_cannot_be_drawn(capsys, tmp_path, monkeypatch, words, error):
    """A picture that cannot be drawn gives one line and status 1, and leaves no file."""
    monkeypatch.chdir(tmp_path)
    assert error in check_refused(capsys, "draw", *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "name", "begins"),
    [
        (["draw", "2x2", "allgather", "-o"], "a b.pdf", b"%PDF-1."),
        (["draw", "2x2", "allgather", "-o"], "a.png", b"\x89PNG\r\n"),
        (["compare", "2x2", "allgather", "--plot"], "a.png", b"\x89PNG\r\n"),
        (["compare", "2x2", "allgather", "--flits", "1:8", "--plot"], "a.pdf", b"%PDF-1."),
        (["compare", "2x2", "allgather,alltoall", "--plot"], "a.pdf", b"%PDF-1."),
    ],
)
def test_pictures_for_papers(tmp_path, words, name, begins):
    """The file name decides the format, and a command replaces only files of the same format."""
    try:
        require_converter(name)
    except MissingTool as missing:
        pytest.skip(str(missing))
    path = tmp_path / name
    assert main([*words, str(path)]) == 0
    assert path.read_bytes().startswith(begins)
    assert path.stat().st_size > 1000
    assert main([*words, str(path)]) == 0
    path.write_text("mine")
    assert main([*words, str(path)]) == 1
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (ModuleNotFoundError("No module", name="cairosvg"), "pip install 'torusfabric[plots]'"),
        (OSError("no library called cairo-2 was found"), "install the package libcairo2"),
    ],
)
def test_what_makes_other_pictures_may_be_missing(tmp_path, monkeypatch, capsys, missing, said):
    """Without the converter, PDF is refused before planning, and SVG is still written."""

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "cairosvg":
                raise missing

    monkeypatch.delitem(sys.modules, "cairosvg", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    for words in (["draw", "3x3", "allgather", "-o"], ["compare", "3x3", "allgather", "--plot"]):
        assert said in check_refused(capsys, *words, tmp_path / "a.pdf", status=3)
        assert not [*tmp_path.iterdir()]
        assert main([*words, str(tmp_path / "a.svg")]) == 0
        (tmp_path / "a.svg").unlink()
