"""Input that once was not answered as it must be, each found by a fuzzer."""

import pytest

from torusfabric.cli import main
from torusfabric.errors import MissingTool
from torusfabric.toolchain import tools


def refused(capsys, words):
    """The only line of an error."""
    assert main(words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_mode_of_nothing(capsys):
    """Which mode is no question before there is a collective."""
    line = refused(capsys, ["draw", "3", "-o", "x.svg", "--mode", "7"])
    assert line.startswith("torusfabric: COLLECTIVE must be given")


def test_names_of_several_lines(capsys):
    assert r"a\nb" in refused(capsys, ["import", "a\nb", "--topology", "4"])
    assert r"not 'a\nb'" in refused(capsys, ["plan", "4x4", "allgather", "--algorithm", "a\nb"])


def test_values_of_any_length(capsys):
    """Of what a user wrote, as much is repeated as can be read."""
    line = refused(capsys, ["plan", "x" * 5000, "allgather"])
    assert len(line) < 1100
    assert line.startswith("torusfabric: Topology must be side lengths")


def test_names_that_no_file_can_have(tmp_path, capsys):
    line = refused(capsys, ["draw", "4x4", "allgather", "-o", "a\0b"])
    assert line == r"torusfabric: File must be writable, not a\x00b (Invalid argument)"
    for command in (["verilog"], ["flash", "--board", "icebreaker"]):
        line = refused(capsys, [*command, "2x2", "allgather", "-o", "a\0b"])
        assert line == r"torusfabric: Folder must be writable, not a\x00b (Invalid argument)"
    (tmp_path / "sweep.toml").write_text(f'plans = ["{"x" * 5000}"]')
    line = refused(capsys, ["sweep", str(tmp_path / "sweep.toml")])
    assert line.startswith("torusfabric: Plan must be a schedule file, not xxx")


@pytest.mark.parametrize("words", [["build", "--board", "icebreaker", "-o"]])
def test_folders_without_files(words, tmp_path, monkeypatch, capsys):
    """Where a tool is missing, no empty folder stays behind."""

    def missing(name, *_, **__):
        raise MissingTool(f"Tool {name} was not found")

    for name in ("run", "require", "version"):
        monkeypatch.setattr(tools, name, missing)
    folder = tmp_path / "new" / "folder"
    assert main([words[0], "2x2", "allgather", "--width", "4", *words[1:], str(folder)]) == 3
    assert not any(tmp_path.iterdir())
    folder.parent.mkdir()
    assert main([words[0], "2x2", "allgather", "--width", "4", *words[1:], str(folder)]) == 3
    assert [*tmp_path.rglob("*")] == [folder.parent]
