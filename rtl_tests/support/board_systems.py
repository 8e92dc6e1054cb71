"""Fabrics on several boards, as tests of boards make them."""

import torusfabric as tf
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.topology.boards import Boards

__all__ = ["board_system"]

#: The options of a `BoardSystem`.
OF_BOARDS = ("ppm", "retries", "phy", "start_timeout")

#: Those of a `Fabric`.
OF_FABRIC = ("tables", "beat")


def board_system(sides, counts, latency, *names, width=8, **options):
    """A torus on some boards: all-gather, or collectives by name, with options of `tf.compile`."""
    how, of_fabric = (
        {name: options.pop(name) for name in names if name in options}
        for names in (OF_BOARDS, OF_FABRIC)
    )
    torus = tf.Torus(*sides, link_latency=latency)
    plans = [tf.plan(torus, name) for name in names or ("allgather",)]
    program = tf.compile(plans if len(plans) > 1 else plans[0], **options)
    return BoardSystem(
        tf.Fabric(program, width=width, **of_fabric), Boards.parse(counts, torus), **how
    )
