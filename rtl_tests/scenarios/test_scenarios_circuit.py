"""Output of the scenario scripts for the papers on circuits and on oblivious all-gathers."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from torusfabric.toolchain import cxx

SIM = Path(__file__).parents[2] / "sim"


def output(script, *words):
    """The output of a script."""
    command = [sys.executable, str(SIM / script), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def refusal(script, *words):
    """The last line of a script that refuses its arguments."""
    done = subprocess.run([sys.executable, SIM / script, *words], capture_output=True, text=True)
    assert done.returncode
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def tables(text):
    """The cells of each row of an all-gather report, by title, network and variant."""
    found, title = {}, None
    for line in text.splitlines():
        if line.endswith(":"):
            title = line
        elif line.split()[1:2] in (["short"], ["large"]):
            name, variant, *cells = line.split()
            found[title, name, variant] = cells
    return found


@pytest.mark.long
def test_circuit_gossip():
    """The script prints claims, bounds and plans of both variants."""
    rows = tables(output("circuit_gossip.py", "--largest", "0"))
    rounds = "Rounds (alpha):"
    assert rows[rounds, "7x7x7", "short"] == ["4", "4", "4"]
    assert rows[rounds, "49x49x49", "large"] == ["10", "7", "10"]
    assert rows[rounds, "343x343x343", "short"] == ["12", "11", "-"]
    hops = "Hops of the longest paths (delta):"
    assert rows[hops, "7x7x7", "large"] == ["13", "9", "13"]
    assert rows[hops, "49x49x49", "short"] == ["96", "72", "96"]
    units = "Units of the longest messages (tau):"
    assert rows[units, "49x49x49", "short"] == ["139658", "139658", "19608", "139658"]
    assert rows[units, "49x49x49", "large"] == ["53908", "53908", "19608", "53908"]
    assert rows[units, "343x343x343", "short"][1] == "47919558"
    cycles = "Clock cycles for messages of 1 flit:"
    assert rows[cycles, "49x49x49", "short"] == [str(8 + 96 + 139658 + 3), "-"]


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
@pytest.mark.long
def test_circuit_gossip_is_simulated():
    """The smallest torus is simulated in the predicted cycles."""
    rows = tables(output("circuit_gossip.py", "--flits", "2"))
    cycles = "Clock cycles for messages of 2 flits:"
    assert rows[cycles, "7x7x7", "short"] == ["819", "819"]
    assert rows[cycles, "7x7x7", "large"] == ["331", "331"]


@pytest.mark.long
def test_circuit_gossip_of_40_million_nodes():
    """The long run plans and checks 343x343x343."""
    rows = tables(output("circuit_gossip.py", "--long"))
    for variant, figures in (("short", ("12", "684", "47919558")),
                             ("large", ("15", "741", "18495303"))):  # fmt: skip
        titles = [title for title, *where in rows if where == ["343x343x343", variant]]
        assert tuple(rows[title, "343x343x343", variant][-1] for title in titles[:3]) == figures


@pytest.mark.long
def test_circuit_broadcast():
    """The script prints bound, theorem and both plans, with simulated cycles as predicted."""
    text = output("circuit_broadcast.py", "4x6", "10x50", "3x3x3", "--largest", "24")
    rows = {tuple(line.split()[:2]): line.split(None, 6)[2:] for line in text.splitlines()[1:-2]}
    assert len(rows) == 4 + 4 + 6
    assert rows["4x6", "4"][:4] == ["2", "4", "4+", "2"]
    assert rows["10x50", "4"] == ["4", "5", "5+", "4", "-            -"]
    assert rows["3x3x3", "6"][:4] == ["2", "3", "3+", "2"]
    assert "*" not in text
    cells = " ".join(word for ports in "1234" for word in rows["4x6", ports][4:])
    pairs = [int(word) for word in cells.replace(",", " ").split()]
    assert len(pairs) == 4 * 2 * 2
    assert pairs[::2] == pairs[1::2]


def test_refusals():
    """Invalid arguments are refused with one line."""
    assert refusal("circuit_gossip.py", "--flits", "0").endswith(
        "error: Flits must be 1 or more, not 0"
    )
    assert refusal("circuit_broadcast.py", "arrowhead:2").endswith(
        "error: Topology must be a torus with sides of 3 or more, not arrowhead:2"
    )


@pytest.mark.long
def test_tables_and_figures(tmp_path):
    """The script prints Table I and the steps, and writes five pictures in valid XML."""
    text = output("oblivious_gossip.py", "--largest", "9", "-o", str(tmp_path / "figures"))
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
    """Small tori are simulated by default, and all-gathers take five cycles more than steps."""
    text = output("oblivious_gossip.py")
    rows = {
        tuple(line.split()[:2]): line.split()[2:] for line in text.splitlines()[24:] if line.split()
    }
    assert rows["hamiltonian", "4x4"] == ["8", "8", "8", "13", "4.00", "1/2", "message"]
    assert rows["one-packet", "5x5"][:4] == ["13", "6", "12", "17"]
    assert rows["redistribute", "4x3"][:3] == ["10", "5", "9"]
