"""Names from users stay names in every generated file."""

import json
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.draw import draw
from torusfabric.draw.animate import animation_page
from torusfabric.simulation.engines.amaranth_engine import AmaranthEngine
from torusfabric.toolchain.quoting import line_comment, shell_command

#: Characters that end a comment, word, cell, string or element in some language.
NASTY = "a\nmodule worse; endmodule\r\u2028 */ `b` $(touch c) '\"|<d>&\x1b\x00@DATA@ \\"

#: Such characters that can be printed, for the name of a schedule.
NASTY_NAME = "a // module worse; endmodule */ `b` $(touch c) '\"|<d>& @DATA@ \\"


def named(text: str) -> tf.Schedule:
    """A schedule whose algorithm has the given name."""
    return replace(tf.plan("2x2", "allgather"), algorithm=text)


def test_name_of_a_file_stays_in_its_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "p\nmodule worse; endmodule\n`b`|.json"
    named("matching").save(name)
    for options in (["--top", "core"], ["--bus", "wishbone"]):
        assert main(["verilog", "--plan", name, *options, "-o", "out"]) == 0
        lines = (tmp_path / "out" / "fabric.v").read_text().splitlines()
        head = lines[: lines.index("module fabric (")]
        assert [line for line in head if line and line[0] not in "/`"] == []
        made = json.loads((tmp_path / "out" / "manifest.json").read_text())["command"]
        shown = subprocess.run(
            ["bash", "-c", f'torusfabric() {{ printf %s\\\\0 "$@"; }}; {made}'],
            capture_output=True,
            check=True,
        )
        assert name.encode() in shown.stdout.split(b"\0")


def test_name_of_an_algorithm_in_files() -> None:
    fabric, plain = (
        tf.Fabric(tf.compile(named(name)), width=8, bus="wishbone")
        for name in (NASTY_NAME, "plain")
    )
    lines, others = (tf.emit(one).text.splitlines() for one in (fabric, plain))
    assert lines[1:] == others[1:]
    assert lines[0].startswith("// ")
    texts = [tf.emit(one).files["fabric.rdl"].splitlines() for one in (fabric, plain)]
    assert len(texts[0]) == len(texts[1])


def test_names_in_pages_made_of_system_rdl(tmp_path: Path) -> None:
    """HTML pages that PeakRDL makes from SystemRDL contain no markup from names."""
    pytest.importorskip("peakrdl", reason="no PeakRDL: pip install peakrdl (extra test)")
    fabric = tf.Fabric(tf.compile(named("<img src=x onerror=alert(1)>")), width=8, bus="wishbone")
    (tmp_path / "fabric.rdl").write_text(tf.emit(fabric).files["fabric.rdl"])
    subprocess.run(["peakrdl", "html", "fabric.rdl", "-o", "html"], cwd=tmp_path, check=True)
    pages = [path.read_text() for path in (tmp_path / "html").rglob("*.html")]
    assert any("onerror=" in page for page in pages)
    assert not any("<img src=x" in page for page in pages)


@pytest.mark.parametrize("name", ["} [exec false] $nothing {", "\\} ; exit 1", '"; exit; "'])
def test_name_of_an_algorithm_in_scripts_of_tcl(name: str) -> None:
    """The name is part of one word of the script, from which Tcl runs no command."""
    tkinter = pytest.importorskip("tkinter", reason="no Tcl: install python3-tk")
    fabric = tf.Fabric(tf.compile(named(name)), width=8, bus="axi-lite")
    script = tf.emit(fabric, flow="vivado").files["vivado/package_ip.tcl"]
    (line,) = (line for line in script.splitlines() if line.startswith("set_property description"))
    interpreter, calls = tkinter.Tcl(), list[tuple[str, ...]]()
    interpreter.createcommand("set_property", lambda *words: calls.append(words))
    interpreter.eval(f"set core core\n{line}")
    ((key, value, core),) = calls
    assert (key, core) == ("description", "core")
    assert "2x2 allgather" in value


def test_name_of_an_algorithm_in_pictures() -> None:
    texts = ET.fromstring(draw(named(NASTY_NAME))).itertext()
    assert "a // module worse" in " ".join(texts)


@pytest.mark.parametrize("character", ["\n", "\r", "\u2028", "\x1b", "\x00", "\udcff"])
def test_characters_that_cannot_be_printed_are_in_no_name(character: str) -> None:
    with pytest.raises(tf.InputError, match="characters that can be printed"):
        named(f"a{character}b")


def test_names_of_nodes_in_save_files_of_gtkwave(tmp_path: Path) -> None:
    """A node name of two lines adds no line to GTKWave's save file, in which lines are commands."""
    import networkx as nx

    ring = nx.cycle_graph(['a\n[dumpfile] "/b"', "b", "c"])
    fabric = tf.Fabric(tf.compile(tf.plan(tf.Graph(ring), "allgather")), width=8)
    tf.simulate(fabric, engine=AmaranthEngine(fabric, wave=tmp_path / "waves.vcd"))
    lines = (tmp_path / "waves.gtkw").read_text().splitlines()
    assert sum(line.startswith("[dumpfile]") for line in lines) == 1


@pytest.mark.parametrize(
    "name", ["@DATA@", "@SCRIPT@", "@STYLE@", "</title><script>", '" onfocus="']
)
def test_name_of_an_algorithm_in_animations(name: str) -> None:
    text = animation_page(tf.compile(named(name)))
    plain = animation_page(tf.compile(named("plain")))
    assert text.count("<script>") == plain.count("<script>")
    assert text.count(' onfocus="') == 0
    assert len(text) - len(plain) < 100


def test_words_of_a_command_come_back() -> None:
    words = [NASTY.replace("\x00", ""), "plain", "two words", "\t", "", "\udcff"]
    command = shell_command(words)
    assert command.isprintable()
    shown = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True)
    assert shown.stdout == b"".join(
        word.encode("utf-8", "surrogateescape") + b"\0" for word in words
    )


def test_comments_end_with_their_lines() -> None:
    line = line_comment(NASTY)
    assert len(line.splitlines()) == 1
    assert not line.endswith("\\")
