"""Two boards on differential pairs or transceivers: after a reset of one, both serve the next
start.

Cells of the ECP5 are models, and transceivers are reset for a few cycles only. Many more resets:
``python -m pytest rtl_tests/fpga/test_pair_resets.py -m long``.
"""

import pytest
from board_systems import board_system
from helpers import few
from verilog_bench import have_icarus

from torusfabric.adapters.boards.hardware.link_plan import PHYS

pytestmark = pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")

#: Link latency for each physical layer, in cycles, with a reserve.
LATENCY = {"lvds": 16, "serdes": 24}


@pytest.fixture(scope="module")
def boards(tmp_path_factory):
    """A function that returns two boards of one node each for a physical layer, written once."""
    from pair_boards import PairBoards

    made = {}

    def find(phy):
        if phy == "serdes":
            pytest.importorskip("liteiclink")
        if phy not in made:
            options = {"max_flits": 2, "phy": PHYS[phy], "start_timeout": 600}
            system = board_system((2,), "2", LATENCY[phy], **options)
            made[phy] = PairBoards(system, tmp_path_factory.mktemp(phy))
        return made[phy]

    return find


#: Reset times in cycles: while boards wait, in a run, in the check after it, and later.
MOMENTS = {"most": 16_000, "step": 3797}


@pytest.mark.parametrize(("phy", "which", "chosen"), few(3, [
    ("lvds", 2, {"hold": 4000, "stop": 1, "again": 12_000}),
    ("lvds", 1, {"hold": 45, "before": 2}),
    ("serdes", 1, {"hold": 2000, "stop": 1, "again": 9000, "step": 7797}),
    ("lvds", 3, {"hold": 2000, "stop": 1, "again": 7000}),
    ("serdes", 2, {"hold": 400, "again": 12_000}),
]))  # fmt: skip
def test_boards_on_pairs_serve_the_next_start_whenever_one_was_reset(phy, which, chosen, boards):
    """Boards serve the next start after a reset at any time, even if a clock stops or a second
    reset interrupts the link search.
    """
    runs, errors = boards(phy).served(which, **MOMENTS | chosen)
    assert runs == len(range(0, 16_000, chosen.get("step", MOMENTS["step"])))
    assert errors <= ({0} if which == 3 else {0, 5, 9, 11})


@pytest.mark.long
@pytest.mark.parametrize("phy", LATENCY)
@pytest.mark.parametrize(("which", "stop"), [(1, 0), (2, 1), (3, 1)])
def test_boards_on_pairs_survive_many_resets(phy, which, stop, boards):
    for again, hold in ((0, 400), (12_000, 2000), (5000, 170_000)):
        chosen = {"stop": stop, "again": again, "hold": hold, "step": 397}
        runs, errors = boards(phy).served(which, **MOMENTS | chosen)
        assert runs == 41
        assert errors <= {0, 5, 9, 11}
