"""Runs of fabrics whose links have parity, built by the recipe in CONTRIBUTING.md.

A bit is flipped on the links into all nodes: for each in-port in turn, and for each cycle of a run
in turn. The trace gives the nodes to which such a link carries a word in that cycle. These nodes,
and no others, must report an error.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from amaranth.hdl import Cat, ClockDomain, Module
from amaranth.lib.wiring import In, Out
from helpers import simulated

import torusfabric as tf
from torusfabric.program.trace import list_arrivals
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.netlist import Instance, Leaf, Part, Role

__all__ = ["CASES", "compiled"]

#: Topology, collectives and options of `compile`: a table, a pattern, long circuits, circuits that
#: are held longer than they are read, sums by the step, groups of nodes, and an engine with trees.
CASES = [
    ("3x3", ["allgather:matching"], {"flits": 2}),
    ("3x3", ["allgather:hamiltonian"], {"flits": 2}),
    ("4x4", ["broadcast:max-flow"], {"flits": 3}),
    ("3x3", ["gather:max-flow"], {"flits": 3}),
    ("2x3", ["allreduce:matching"], {"flits": 6}),
    ("2x3", ["allgather@1"], {"flits": 2}),
    ("3", ["alltoall", "allreduce:matching", "broadcast:spanning-tree"], {"max_flits": 3}),
]


def compiled(topology, collectives, options):
    """Return the program of a case."""
    schedules = [tf.plan(topology, name) for name in collectives]
    return tf.compile(schedules if len(schedules) > 1 else schedules[0], **options)


class Links(Leaf):
    """The links into a node, which flip a bit of a word on request."""

    def __init__(self, ports, width):
        self._width = width
        super().__init__(
            {"sent": In(ports * width), "flip": In(ports), "passed": Out(ports * width)}
        )

    def elaborate(self, platform):
        m, flip = Module(), self.input_value("flip")
        sent = enumerate(self.input_words("sent", self._width))
        m.d.comb += self.passed.eq(Cat(word ^ flip[port] for port, word in sent))
        return m


def with_links(fabric):
    """Return the netlist of a fabric with `Links` in front of all in-ports."""
    net, width, ports = fabric.netlist, fabric.width, fabric.ports
    sent = {
        router.node: router.inputs["arriving"] for router in net.instances_with_role(Role.ROUTER)
    }

    def behind_them(instance):
        faulty = {
            part: Part(f"faulty_{instance.node}", port * width, width)
            for port, part in enumerate(sent.get(instance.node, ()))
        }
        inputs = {
            name: tuple(faulty.get(part, part) for part in parts)
            for name, parts in instance.inputs.items()
        }
        return replace(instance, inputs=inputs)

    flip = (Part("flip", 0, ports),)
    links = (
        Instance(
            f"links_{node}", "links", Role.OTHER, {"sent": words, "flip": flip},
            {"passed": f"faulty_{node}"}, node,
        )
        for node, words in sent.items()
    )  # fmt: skip
    return replace(
        net,
        inputs=net.inputs | {"flip": ports},
        modules=net.modules | {"links": lambda: Links(ports, width)},
        roles=net.roles | {"links": Role.OTHER},
    ).with_instances(
        (*map(behind_them, net.instances), *links),
        {f"faulty_{node}": ports * width for node in sent},
    )


def carried(program):
    """Return the nodes that receive a word, as bits, for each in-port and cycle of a run."""
    found = np.zeros((program.ports, program.cycles()), object)
    for arrival in list_arrivals(program):
        last = len(arrival.hops)
        for hops, sent in enumerate(arrival.hops, 1):
            first = arrival.cycle - (last - hops)
            cycles = first + arrival.stride * np.arange(arrival.flits)
            found[program.topology.opposite[sent], cycles] |= 1 << arrival.path[hops]
    return found


def reports(program):
    """Return the reported errors of each mode.

    An entry has the reports for a fault on each in-port in each cycle, and the report without a
    fault.
    """
    design = Assembly(with_links(tf.Fabric(program, width=4)))
    m = Module()
    m.domains.sync = clock = ClockDomain()
    m.submodules.design = design

    async def one_run(ctx, cycles, port, faulty):
        ctx.set(design.start, 1)
        for cycle in range(cycles + 1):
            await ctx.tick()
            ctx.set(design.start, 0)
            ctx.set(design.flip, (cycle == faulty) << port)
        assert ctx.get(design.done)
        assert ctx.get(design.cycles) == cycles
        reported = ctx.get(design.parity_error)
        ctx.set(clock.rst, 1)
        await ctx.tick()
        ctx.set(clock.rst, 0)
        return reported

    found = []

    async def testbench(ctx):
        for mode in range(len(program.modes)):
            for name, value in (("mode", mode), ("length", program.flits)):
                if hasattr(design, name):
                    ctx.set(getattr(design, name), value)
            cycles = program.cycles(mode=mode)
            reported = [
                [await one_run(ctx, cycles, port, cycle) for cycle in range(cycles)]
                for port in range(program.ports)
            ]
            found.append((reported, await one_run(ctx, cycles, 0, None)))

    simulated(m, testbench)
    return found


def check(case):
    """Check a case; return the cycles of its modes."""
    program = compiled(*case)
    assert tf.simulate(tf.Fabric(program, width=4)).passed
    for mode, (reported, without) in enumerate(reports(program)):
        wanted = carried(program.alone(mode))
        assert (wanted == 0).any()
        assert (wanted > 0).any()
        assert reported == wanted.tolist(), (case, mode)
        assert not without
    return [program.cycles(mode=mode) for mode in range(len(program.modes))]


if __name__ == "__main__":
    package = str(Path(tf.__file__).parents[1])
    print(json.dumps({"package": package, "cycles": [check(case) for case in CASES]}))
