"""Faults that are planted in the text of small fabrics, for the prover to refute."""

import re
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torusfabric as tf
from torusfabric.proof import prove
from torusfabric.proof.prove import loaded
from torusfabric.toolchain.cache import Cache

__all__ = ["CHOICE", "FABRICS", "OTHER_WAY", "Fault", "fabric_of", "names", "refutation"]

#: A choice between two values, and the same the other way round.
CHOICE, OTHER_WAY = r"\? (\S+) : ([^\s,;)]+)", r"? \2 : \1"

#: Small fabrics, by what they are for: topology, collectives, what they are compiled with, and what
#: hardware they are.
FABRICS = {
    "table": ("2x3", ["alltoall"], {"flits": 2}, {}),
    "pattern": ("3x3", ["allgather"], {"flits": 2}, {}),
    "rounds": ("3x3", ["broadcast"], {"flits": 3}, {}),
    "sums": ("2x3", ["allreduce:matching"], {"flits": 6, "operators": ["add", "max"]}, {}),
    "sums of words": ("2x3", ["allreduce:matching"], {"flits": 6}, {}),
    "sums along trees": (
        "2x3",
        ["allreduce:spanning-tree"],
        {"flits": 2, "operators": ["add", "max"]},
        {},
    ),
    "sums around cycles": (
        "3x3",
        ["reduce-scatter:hamiltonian"],
        {"flits": 8, "operators": ["add", "min"]},
        {},
    ),
    "lengths": ("3", ["allgather"], {"max_flits": 5}, {}),
    "engine": ("2x3", ["alltoall", "broadcast"], {"max_flits": 3, "root": "any"}, {}),
    "many rows": (
        "3x3",
        ["alltoall", "allreduce:matching", "allgather", "scatter"],
        {"max_flits": 2},
        {},
    ),
    "injected sums": (
        "3x3",
        ["reduce:max-flow"],
        {"flits": 2, "operators": ["add", "min"]},
        {},
    ),
    "core": ("2x3", ["alltoall"], {"flits": 2}, {"top": "core"}),
    "core of any root": ("3x3", ["gather"], {"flits": 2, "root": "any"}, {"top": "core"}),
    "streams": ("2x3", ["alltoall"], {"flits": 4}, {"top": "stream", "beat": 1}),
    "streams with clocks": (
        "2",
        ["allgather"],
        {"flits": 1},
        {"top": "stream", "clocks": "per-node"},
    ),
    "streams of any root": (
        "3x3",
        ["broadcast"],
        {"max_flits": 3, "root": "any"},
        {"top": "stream", "beat": 1},
    ),
    "streams of four sections": ("2x3", ["alltoall"], {"flits": 2}, {"top": "stream", "beat": 1}),
    "engine of four sections": (
        "2",
        ["alltoall", "broadcast"],
        {"max_flits": 8, "root": "any"},
        {"top": "stream", "beat": 1},
    ),
    # Of three modes, so that the bits of a mode can name one that there is not.
    "engine with a barrier": (
        "2",
        ["allgather", "alltoall"],
        {"max_flits": 2, "barrier": True},
        {"top": "stream", "beat": 1},
    ),
    "long links": (tf.Torus(2, 3, link_latency=(2, 7)), ["alltoall"], {"flits": 2}, {}),
    "streams of a mesh": (
        "mesh:3",
        ["halo:any-network"],
        {"flits": 2},
        {"top": "stream", "beat": 1},
    ),
    "slow link": ("3!0:+0=2", ["allgather:any-network"], {"flits": 2}, {}),
    "beats": ("3", ["alltoall"], {"max_flits": 6}, {"width": 8, "beat": 2}),
    "streams of beats": (
        "3",
        ["alltoall"],
        {"max_flits": 6},
        {"top": "stream", "width": 16, "beat": 2},
    ),
    "loaded sums": (
        "3",
        ["allgather", "allreduce:spanning-tree"],
        {"max_flits": 2},
        {"tables": "ram"},
    ),
    "streaming core": ("3x3", ["allgather:hamiltonian"], {"flits": 3}, {"top": "core"}),
}


#: Whose hardware has the faults that are planted, where none is named.
ALGORITHMS = {
    "allgather": "hamiltonian",
    "allreduce": "matching",
    "alltoall": "matching",
    "broadcast": "max-flow",
    "gather": "matching",
    "reduce": "max-flow",
    "scatter": "matching",
}


@cache
def fabric_of(name):
    """A small fabric, by what it is for."""
    topology, collectives, options, hardware = FABRICS[name]
    names = [name if ":" in name else f"{name}:{ALGORITHMS[name]}" for name in collectives]
    schedules = [tf.plan(topology, name) for name in names]
    whole = schedules if len(schedules) > 1 else schedules[0]
    return tf.Fabric(tf.compile(whole, **options), **({"width": 3} | hardware))


@cache
def text_of(name):
    """Its text; of tables that are loaded, with what is there."""
    fabric = fabric_of(name)
    return tf.emit(loaded(fabric) if fabric.frame else fabric)


class Fault(NamedTuple):
    """A part of the text of a module, and what takes its place.

    Parameters
    ----------
    fabric, module : str
    old : str
        A pattern.
    new : str
    number : int
        Which of the places that the pattern matches, from 0.
    """

    fabric: str
    module: str
    old: str
    new: str
    number: int = 0


def planted(fault):
    """The text with a fault."""
    design = text_of(fault.fabric)
    text = design.modules[fault.module]
    places = list(re.finditer(fault.old, text, re.M))
    assert places, f"{fault.old} must occur in {fault.module} of the fabric {fault.fabric}"
    place = places[fault.number]
    changed = text[: place.start()] + place.expand(fault.new) + text[place.end() :]
    assert changed != text
    return replace(design, modules=design.modules | {fault.module: changed})


def refutation(fault):
    """What is found of a text with a fault, or None."""
    return prove(fabric_of(fault.fabric), design=planted(fault), cache=Cache()).counterexample


def names(faults):
    """Names of faults, for tests."""
    return [f"{fault.fabric} {fault.module} {fault.old}" for fault in faults]
