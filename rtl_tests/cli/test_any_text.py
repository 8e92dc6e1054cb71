"""Names that files and users choose freely are printed as plain text on a terminal."""

import json
import re
import sys
from pathlib import Path

import pytest
from helpers import few

from torusfabric.cli import main
from torusfabric.cli.output import printable_text


@pytest.fixture
def plan(tmp_path, capsys):
    """A function that makes a schedule file with any algorithm name and returns its path."""

    def make(algorithm="x", name="plan.json"):
        path = tmp_path / name
        assert main(["plan", "3", "allgather", "--algorithm", "matching", "-o", str(path)]) == 0
        path.write_text(json.dumps(json.loads(path.read_text()) | {"algorithm": algorithm}))
        capsys.readouterr()
        return str(path)

    return make


@pytest.mark.parametrize("name", few(2, ["x[/b]", "x[red]y", ":smile:", "%s{}"], tuples=True))
def test_names_are_no_markup(plan, capsys, name):
    """An algorithm name is printed as it is, without interpretation as markup."""
    path = plan(name)
    assert main(["compare", "--plan", path]) == 0
    assert name in capsys.readouterr().out
    assert main(["check", path]) == 0
    assert re.search(rf"^algorithm +{re.escape(name)}$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("name", ["a\x1b[31m.json", "a\udcff.json", "a\nb.json"])
def test_names_of_files(plan, capsys, name):
    """Control characters and invalid text in file names are escaped."""
    path = plan(name=name)
    for words in (["check", path], ["compare", "--plan", path], ["check", path + "x"]):
        main(words)
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err
        (out + err).encode()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_bytes_in_names_that_get_into_files(plan, monkeypatch, tmp_path):
    """Bytes in a file name are escaped in Verilog, and unchanged where a program opens the file."""
    monkeypatch.chdir(tmp_path)
    words = ["verilog", "--plan", plan(name="a\udcff.json"), "-o", "out", "--quiet"]
    assert main(words) == 0
    assert any(rb"a\377.json" in path.read_bytes() for path in Path("out").glob("*.v"))
    for engine in ("amaranth", "auto"):
        words = ["simulate", "3", "allgather", "--engine", engine, "--vcd", "w\udcff.vcd"]
        assert main([*words, "--quiet"]) == 0
        assert b"w\xff.vcd" in Path("w\udcff.gtkw").read_bytes()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a b\té\n", "a b\té\n"), ("\x00\r\x9b", r"\x00\r\x9b"), ("\u202e\ud800", r"\u202e\ud800")],
)
def test_printable(text, shown):
    """Printable text stays unchanged, and other characters are escaped."""
    assert printable_text(text) == shown
