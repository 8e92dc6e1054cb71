"""One board of several, run alone with its link ports looped back to itself."""

import pytest
from amaranth.hdl import Cat, ClockSignal
from board_systems import board_system

import torusfabric as tf
from torusfabric.adapters.boards.hardware import Block
from torusfabric.adapters.boards.hardware.system import link_port_name
from torusfabric.errors import WorkFailed


def block(*, sides=(2,), counts="2", board=1, collective="allgather", flits=2):
    return Block(board_system(sides, counts, 9, collective, flits=flits, retries=0), board)


def test_a_block_runs_alone():
    """All words are right, and a run takes as many cycles as on all boards."""
    made = block()
    board = tf.connect("sim", made)
    report = board.run(repeat=2)
    assert report.passed
    assert report.words_checked == 2 * made.layout.recv_words
    assert report.cycles == made.system.link_plan.total_cycles(made.system.fabric.predicted_cycles)
    assert board.carry([[17, 4]])[0].tolist() == [[17, 4, 17, 4]]


def test_words_of_which_nothing_is_known_are_not_checked():
    """Words without a known sender are not checked: the root is on the other board."""
    report = tf.connect("sim", block(collective="broadcast")).run()
    assert (report.passed, report.words_checked) == (True, 0)
    report = tf.connect("sim", block(collective="broadcast", board=0)).run()
    assert report.passed
    assert report.words_checked > 0


def crossed(close, board, m, design):
    """Connect each link port to itself, as if cables were swapped."""
    m.d.comb += design.signal_of_net("board").eq(board.number)
    for link in range(board.system.link_plan.n_links):
        rx = [
            design.signal_of_net(link_port_name(link, f"rx_{name}"))
            for name in ("clk", "word", "frame")
        ]
        word, frame = (
            design.signal_of_net(link_port_name(link, f"tx_{name}")) for name in ("word", "frame")
        )
        m.d.comb += Cat(rx).eq(Cat(ClockSignal(), word, frame))


def flipped(close, board, m, design):
    """Invert one bit of an incoming word."""
    close(board, m, design, None)
    m.d.comb += design.signal_of_net(link_port_name(0, "rx_word")).eq(
        design.signal_of_net(link_port_name(1, "tx_word")) ^ 4
    )


@pytest.mark.parametrize("closed", [crossed, flipped])
def test_links_that_fail_are_noticed(monkeypatch, closed):
    close = Block.close
    monkeypatch.setattr(
        Block, "close", lambda board, m, design, _platform: closed(close, board, m, design)
    )
    with pytest.raises(WorkFailed, match="The board refused"):
        tf.connect("sim", block()).run()
