"""What is proved of the queues between clocks: their counters may be read in another clock.

Every counter is in one clock, and the two inputs that move it may do anything. So it does not
matter that a proof has one clock for all registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Model

if TYPE_CHECKING:
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["crossing_harness"]

#: The counters of a queue.
POINTERS = ("written", "fetched")


def crossing_harness(design: Design, name: str) -> Harness:
    """Of the counters that are read in another clock one bit changes at a time, if any.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("2", "allgather"))
    >>> fabric = tf.Fabric(program, width=2, top="stream", clocks="per-node")
    >>> crossing_harness(tf.emit(fabric), "s_axis_crossing").properties
    4
    """
    model = Model(design, name, shows=[*POINTERS, *(f"{each}_gray" for each in POINTERS)])
    # Resets of both sides are high together.
    model.drive("node_clk", "clk")
    model.drive("node_rst", "rst")
    for each in POINTERS:
        bits = model.width(each)
        changed = model.wire(f"{each}_changed", f"{each}_gray ^ $past({each}_gray)", bits)
        model.claim(f"{each}_is_in_gray_code", f"{each}_gray == ({each} ^ ({each} >> 1))")
        one = f"$past(rst) || !({changed} & ({changed} - 1'd1))"
        model.claim(f"one_bit_of_{each}_changes", one)
    return model.harness("of the counters that the other clock reads, one bit changes at a time",
                         cycles=2)  # fmt: skip
