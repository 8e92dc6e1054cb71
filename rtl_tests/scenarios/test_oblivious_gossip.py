"""The comparison script of the oblivious all-gathers: what it prints, and what it draws."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SCRIPT = Path(__file__).parents[2] / "sim" / "oblivious_gossip.py"


def output(*words):
    """What the script prints."""
    command = [sys.executable, str(SCRIPT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_tables_and_figures(tmp_path):
    """Table I, steps, and five pictures that a parser reads."""
    text = output("--largest", "9", "-o", str(tmp_path / "figures"))
    assert "14 of 54 entries differ, all of them for d = 3" in text
    rows = {
        tuple(line.split()[:2]): line.split()[2:] for line in text.splitlines()[24:] if line.split()
    }
    assert rows["hamiltonian", "6x8"] == ["24", "24", "24", "-", "12.00", "1/2", "message"]
    assert rows["redistribute", "20x3"][2] == "29"
    assert rows["one-packet", "8x8"][:3] == ["26", "16", "26"]
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == [f"figure-{k}.svg" for k in range(1, 6)]
    for name in names:
        ElementTree.parse(tmp_path / "figures" / name)


@pytest.mark.long
def test_cycles_are_simulated():
    """By default small tori are simulated: five cycles more than steps."""
    text = output()
    rows = {
        tuple(line.split()[:2]): line.split()[2:] for line in text.splitlines()[24:] if line.split()
    }
    assert rows["hamiltonian", "4x4"] == ["8", "8", "8", "13", "4.00", "1/2", "message"]
    assert rows["one-packet", "5x5"][:4] == ["13", "6", "12", "17"]
    assert rows["redistribute", "4x3"][:3] == ["10", "5", "9"]
