"""Pictures that move: each hop of a message in its round."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from helpers import program_of

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.draw.moving import moving_picture
from torusfabric.errors import InputError
from torusfabric.program.trace import arrivals

SVG = "{http://www.w3.org/2000/svg}"


def shown(text):
    """Circles and growing lines, each with when it changes, in seconds."""
    root = ElementTree.fromstring(text)
    for element in root:
        change = element.find(f"{SVG}animate")
        if change is not None:
            seconds = float(change.get("dur")[:-1])
            times = [float(time) * seconds for time in change.get("keyTimes").split(";")]
            assert times == sorted(times)
            yield element, times


@pytest.mark.parametrize(
    ("selection", "node"),
    [
        ("4x5 allgather:hamiltonian", 0),
        ("4x4 allgather:matching", 7),
        ("3x3 alltoall:matching", 4),
        ("5x5 broadcast:diagonal", 0),
        ("arrowhead:2 broadcast:wormhole-forest", 0),
        ("3x4 allgather@1:hamiltonian", 5),
    ],
)
def test_hops_are_those_of_the_schedule(selection, node):
    """As many lines as hops (two for one that is drawn as stubs), and each node once."""
    program = tf.compile(tf.plan(*selection.split()))
    blocks = program.blocks
    moves = [
        move
        for move in arrivals(program)
        for group in [int(blocks.groups.group[move.path[0]])]
        if node in {int(blocks.groups.members[group][blocks.origin(id)]) for id in move.blocks}
    ]
    found = list(shown(moving_picture(program, node)))
    lines = [times for element, times in found if element.tag == f"{SVG}path"]
    nodes = [times for element, times in found if element.tag == f"{SVG}circle"]
    hops = sum(len(move.hops) for move in moves)
    assert hops <= len(lines) <= 2 * hops
    assert len(nodes) == len({move.node for move in moves} - {node})
    begins = {round(times[1], 2) for times in lines}
    assert len(begins) >= len({move.round for move in moves})


def test_what_does_not_exist():
    """A node that there is not; all messages at once."""
    with pytest.raises(InputError, match=r"^Node must be from 0 to 8, not 9$"):
        moving_picture(program_of("3x3", "allgather"), 9)


def test_command(tmp_path, capsys):
    """A file, or the reason why not."""
    path = tmp_path / "moving.svg"
    assert main(["draw", "3x3", "allgather", "--moving", "4", "-o", str(path)]) == 0
    assert re.search("the message of node 4<", path.read_text())
    assert main(["draw", "3x3", "allgather", "--moving", "4", "--links", "-o", str(path)]) == 1
    assert "--moving must be left out for --links" in capsys.readouterr().err
