"""Fabrics on several boards, for tests of boards."""

import torusfabric as tf
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.topology.boards import Boards

__all__ = ["board_system"]

#: Options of a `BoardSystem`.
OF_BOARDS = ("ppm", "retries", "phy", "start_timeout")

#: Options of a `Fabric`.
OF_FABRIC = ("tables", "beat")


def board_system(sides, counts, latency, *names, width=8, **options):
    """Return a torus on some boards, with an all-gather or with collectives by name.

    Further options are options of `tf.compile`.
    """
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
