"""The draw command."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from torusfabric.cli import main

SPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["compare", "2x2", "allgather", "--plot", "curves.pdf"], "curves.svg, not to curves.pdf"),
        (["draw", "2x2", "allgather", "-o", "a.png"], "a.svg, not to a.png"),
        (["draw", "2x2", "allgather", "-o", "a.b.gz"], "a.svg, not to a.b.gz"),
        (["animate", "2x2", "allgather", "-o", "a.gif"], "a.html, not to a.gif"),
    ],
)
def test_a_drawing_is_called_what_it_is(capsys, tmp_path, monkeypatch, words, wanted):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 1
    assert f"Drawing must be written to a file such as {wanted}\n" in capsys.readouterr().err
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
    """A checked schedule becomes a picture with a legend; the facts are those of the plan."""
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
        (["4x4", "allgather", "-o", "/nonexistent/x.svg"], "Folder must be writable"),
        (["4x4", "allgather", "-o", "."], "File must be writable"),
        (["65x64", "allgather", "-o", "x.svg"], "Drawing must have at most 4096 nodes, not 4160"),
        (["4x4", "nonsense", "-o", "x.svg"], "Collective must be one of"),
        (["4x4", "allgather"], "-o/--output"),
    ],
)
def test_what_cannot_be_drawn(capsys, tmp_path, monkeypatch, words, error):
    """One line, status 1, and no file left behind."""
    monkeypatch.chdir(tmp_path)
    assert main(["draw", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert error in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_drawing_needs_no_amaranth(tmp_path):
    """The planning commands run without the hardware side."""
    script = (
        "import sys; from torusfabric.cli import main; "
        f"main(['draw', '4x4', 'allgather', '-o', {str(tmp_path / 'x.svg')!r}]); "
        "sys.exit('amaranth' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
