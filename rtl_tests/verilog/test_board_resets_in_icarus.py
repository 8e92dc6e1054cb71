"""Emitted boards in a bench of their own: after a reset of one at any time, both serve the next
start.

Cables delay words, and the two clocks differ in rate.
"""

import json

import pytest
from helpers import few
from resets_bench import board_instance, serve_resets
from verilog_bench import have_icarus

from torusfabric.cli import main

pytestmark = pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")

LINK = """
  wire [9:0] sent_{k}_{link};
  reg [9:0] came_{k}_{link} = 0;
  reg clock_{k}_{link} = 0;
  always @(sent_{there}_{port}) came_{k}_{link} <= #({late}) sent_{there}_{port};
  always @(clk[{there}]) clock_{k}_{link} <= #({late}) clk[{there}];"""


def boards_of(manifest):
    """Return the text of two boards with one node each, and of the cables between them."""
    text = []
    for board in manifest["boards"]:
        k, pins = board["board"], {}
        for each in board["links"]:
            link, there, port = each["link"], each["to"]["board"], each["to"]["link"]
            late = 1.5 + 3 * link
            text.append(LINK.format(k=k, link=link, there=there, port=port, late=late))
            pins |= {
                f"link_{link}_tx_word": f"sent_{k}_{link}[7:0]",
                f"link_{link}_tx_frame": f"sent_{k}_{link}[9:8]",
                f"link_{link}_rx_word": f"came_{k}_{link}[7:0]",
                f"link_{link}_rx_frame": f"came_{k}_{link}[9:8]",
                f"link_{link}_rx_clk": f"clock_{k}_{link}",
            }
        text.append(board_instance(manifest, k, pins))
    return text


def served(folder, which, **chosen):
    """Reset emitted boards repeatedly; return the runs and errors of `serve_resets`."""
    boards = boards_of(json.loads((folder / "manifest.json").read_text()))
    return serve_resets(folder, boards, ["fabric.v"], which, **chosen)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    words = ["2", "allgather", "--boards", "2", "--width", "8", "--max-flits", "2"]
    assert main(["verilog", *words, "--start-timeout", "900", "-o", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("which", "before", "hold"),
    few(2, [(1, 65, 45), (2, 63, 400), (3, 1, 45), (1, 127, 4000), (2, 0, 170_000), (2, 129, 45)]),
)
def test_boards_serve_the_next_start_whenever_one_was_reset(pair, which, before, hold):
    runs, errors = served(pair, which, before=before, hold=hold)
    assert runs == 28
    assert errors <= {0, 5, 9, 11}
    # If both boards are reset, neither has an error.
    assert errors == {0} if which == 3 else errors & {9, 11}


@pytest.mark.long
@pytest.mark.parametrize("which", [1, 2, 3])
@pytest.mark.parametrize("hold", [45, 77, 400, 4000])
def test_boards_serve_the_next_start_after_any_reset(pair, which, hold):
    runs, _ = served(pair, which, before=which, hold=hold, most=12_000, step=7)
    assert runs == 1715
