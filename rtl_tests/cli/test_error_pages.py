"""Each error leads to a section of the documentation that explains it."""

import json
import re
from pathlib import Path

import pytest

from torusfabric.cli import main
from torusfabric.cli.failures import FAMILIES, INTERRUPTED, MACHINE, PAGE, TOOL, page_of
from torusfabric.errors import MissingTool
from torusfabric.rtl.run_choices import RunError

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "torusfabric"

#: Packages that raise errors on behalf of their callers.
GENERAL = {"toolchain"}


def sections():
    """Return the link names of the sections of the page."""
    heads = re.findall(r"^##+ (.*)$", (ROOT / PAGE).read_text(encoding="utf-8"), re.M)
    return {head.lower().replace(" ", "-") for head in heads}


def test_each_family_is_a_section():
    """Each family of errors has a section, and each section but one belongs to a family."""
    families = {*FAMILIES.values(), MACHINE, INTERRUPTED, TOOL}
    assert families | {"errors-of-a-run"} == sections()


def test_errors_of_a_run():
    """Each error number of a run is explained."""
    _, _, text = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Errors of a run")
    assert [*map(int, re.findall(r"^\| (\d+) \|", text, re.M))] == [*map(int, RunError)]


def test_families_are_of_parts_that_are_there():
    """Each family names an existing module, and each package that raises errors has a family."""
    for part in FAMILIES:
        # Modules of adapters have the same name in the folder of each adapter.
        name = part.replace(".", "/").replace("adapters/", "adapters/*/")
        assert [*PACKAGE.glob(name), *PACKAGE.glob(f"{name}.py")], part
    rooms = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")
             if "raise InputError" in path.read_text(encoding="utf-8")}  # fmt: skip
    assert rooms - GENERAL <= {part.partition(".")[0] for part in FAMILIES}


@pytest.mark.parametrize(
    ("words", "section"),
    [
        ("plan 4x4 allgather --lnks", "command-line"),
        ("plan 4xx4 allgather", "topology"),
        ("plan 4x4 algather", "collective"),
        ("plan 4x4 allgather --algorithm lee-code", "algorithm"),
        ("plan 900000x1000 allgather", "too-large"),
        ("verilog 2x2 allgather --width 0 -o out/", "fabric"),
        ("check nowhere.json", "schedule-file"),
        ("import nowhere.xml --topology 2x2", "files-of-other-systems"),
        ("simulate 2x2 allgather --wave run.txt", "simulation"),
        ("synth 2x2 allgather --target none", "synthesis"),
        ("boards --measure none", "board"),
        ("sweep nowhere.toml -o out.jsonl", "sweep"),
        ("draw 2x2 allgather --moving 9 -o out.svg", "picture"),
        ("draw 2x2 allgather -o /dev/null/out.svg", "file"),
    ],
)
def test_an_error_names_its_section(words, section, tmp_path, monkeypatch, capsys):
    """An error names its section in JSON, and on a second line with --verbose."""
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--verbose"], ["--json"]):
        assert main([*words.split(), *more]) == 1
        err = capsys.readouterr().err.splitlines()
        if "--json" in more:
            assert json.loads(err[-1])["error"]["page"] == f"{PAGE}#{section}"
        elif "--verbose" in more:
            assert err[-1] == f"  see {PAGE}#{section}"
        else:
            assert err[-1].startswith("torusfabric: ")


@pytest.mark.parametrize(
    ("error", "section"),
    [(MissingTool("x"), TOOL), (OSError(28, "full"), MACHINE), (KeyboardInterrupt(), INTERRUPTED)],
)
def test_errors_of_the_machine(error, section):
    """Errors of tools, of the machine and of an interruption have sections of their own."""
    assert page_of(error) == f"{PAGE}#{section}"
