"""Names in the text are given: what Amaranth would find in bytecode depends on Python's version."""

import pytest
from fabrics import build_fabric
from helpers import few

import torusfabric as tf
from torusfabric.fpga.board import find_board
from torusfabric.fpga.board.plan import plan_build
from torusfabric.rtl.amaranth_private import tracer

BOARDS = ("icebreaker", "ulx3s-25f")


def nameless(monkeypatch):
    """Let bytecode hold no names of variables."""

    def given(depth=2, default=None):
        return default or "required"

    monkeypatch.setattr(tracer, "get_var_name", given)


@pytest.mark.parametrize(
    ("collectives", "how"),
    few(
        3,
        [
            ("allgather", {"flits": 2}),
            ("allgather", {"bus": "axi-lite"}),
            ("alltoall", {"bus": "wishbone", "max_flits": 4}),
            ("alltoall", {"top": "core"}),
            ("scatter,allgather", {"top": "stream", "max_flits": 4}),
            ("allreduce", {"top": "stream", "clocks": "per-node"}),
            ("allgather,alltoall,allreduce", {"max_flits": 4, "operators": ["add", "max"]}),
        ],
    ),
)
def test_no_name_comes_from_bytecode(collectives, how, monkeypatch):
    text = tf.emit(build_fabric("3x3", collectives, **how)).text
    nameless(monkeypatch)
    assert tf.emit(build_fabric("3x3", collectives, **how)).text == text


@pytest.mark.parametrize("board", few(1, [*BOARDS]))
def test_no_name_of_an_image_comes_from_bytecode(board, monkeypatch):
    def files():
        plan, _ = plan_build(build_fabric("3x3", "allgather", max_flits=4), find_board(board))
        return dict(plan.files)

    before = files()
    nameless(monkeypatch)
    assert files() == before
