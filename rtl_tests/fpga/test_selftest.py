# amaranth: UnusedElaboratable=no
"""The tester: it passes what is right, and names what is wrong."""

from copy import copy

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect
from helpers import delay_end, fabric_of, few, forgetful, misrouted, with_operator
from selftest_bench import COLLECTIVES, REDUCTIONS, run

from torusfabric.collective import Operator
from torusfabric.errors import InputError
from torusfabric.fpga.selftest.image import self_test
from torusfabric.fpga.selftest.tester import Result
from torusfabric.fpga.selftest.tester import Tester as FabricTester
from torusfabric.fpga.selftest.words import hash_word
from torusfabric.rtl.assembly import Assembly


def tried(fabric, runs=1, *, program=None):
    """Run the tester of a fabric, or of one with another program; returns what each run gave."""
    m = Module()
    tested = fabric
    if program is not None:
        tested = copy(fabric)
        tested.program = program
    m.submodules.tester = tester = FabricTester(tested)
    m.submodules.fabric = design = Assembly(fabric.netlist)
    connect(m, tester.host, design)
    found = []

    async def testbench(ctx):
        for number in range(1, runs + 1):
            ctx.set(tester.run, number)
            ctx.set(tester.start, 1)
            await ctx.tick()
            ctx.set(tester.start, 0)
            for _ in range(30_000):
                await ctx.tick()
                if not ctx.get(tester.busy):
                    break
            names = ("result", "node", "address", "expected", "got", "busy")
            found.append({name: ctx.get(getattr(tester, name)) for name in names})

    run(m, testbench)
    return found


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"),
    [*few(5, COLLECTIVES), *few(3, REDUCTIONS)],
)
def test_tester_passes(topology, collective, algorithm, options):
    """The tester finds all collectives right, run after run."""
    found = tried(fabric_of(topology, collective, algorithm, width=8, **options), runs=2)
    assert [(f["result"], f["busy"]) for f in found] == [(Result.PASS, 0)] * 2


@pytest.mark.parametrize("width", [1, 24, 40])
def test_tester_of_other_widths(width):
    """Words of a bit, and words wider than the hash, are tested as well."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=width, flits=2)
    assert tried(fabric)[0]["result"] == Result.PASS


def test_tester_names_the_first_fault():
    """With a wrong bit in the settings, node, address and both words are named."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", flits=2, fault=misrouted)
    (found,) = tried(fabric)
    assert found["result"] == Result.WRONG
    origin, flit = divmod(found["address"] - fabric.layout.recv_base, 2)
    assert found["expected"] == hash_word(8, 1, origin, 0, flit)
    sent = [[hash_word(8, 1, node, 0, flit) for flit in range(2)] for node in range(4)]
    assert found["got"] in np.append(np.array(sent).ravel(), 0)


@pytest.mark.parametrize(("topology", "collective", "algorithm"), [
    ("2x2", "reduce", "max-flow"), ("2x2", "reduce-scatter", "matching"),
    ("2x2", "allreduce", "matching"),
])  # fmt: skip
def test_tester_finds_a_wrong_operator(topology, collective, algorithm):
    """Hardware that takes unsigned minima fails where it should take others, or signed ones."""
    fabric = fabric_of(topology, collective, algorithm, operator=Operator.parse("min"))
    for operator in (Operator.parse("min:signed"), Operator.parse("and"), Operator.parse("add")):
        found = tried(fabric, runs=3, program=with_operator(fabric.program, operator))
        assert Result.WRONG in [f["result"] for f in found]


@pytest.mark.parametrize("name", ["add", "xor"])
def test_tester_finds_a_lost_contribution(name):
    """A part of a sum that is left out on the way is found, whatever the operator."""
    fabric = fabric_of("3x3", "reduce-scatter", "matching", operator=Operator.parse(name),
                       fault=forgetful)  # fmt: skip
    found = tried(fabric, runs=2)
    assert Result.WRONG in [f["result"] for f in found]


@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_tester_finds_words_of_another_group(collective):
    """Words along the columns are not those along the rows, though as many, of the same nodes."""
    columns, rows = (fabric_of("2x2", f"{collective}@{axis}", "matching") for axis in (0, 1))
    assert tried(columns)[0]["result"] == Result.PASS
    assert tried(columns, program=rows.program)[0]["result"] == Result.WRONG


def test_tester_gives_up():
    """A fabric that is not done when predicted is late, whatever its words."""
    fabric = fabric_of("3x3", "allgather", "hamiltonian", flits=4)
    delay_end(fabric)
    assert tried(fabric)[0]["result"] == Result.LATE


def test_fabrics_that_cannot_be_tested():
    """Fabrics without a host port are refused in one line."""
    fabric = fabric_of("4x4", "allgather", "hamiltonian", flits=2, top="core")
    with pytest.raises(
        InputError, match=r"^Fabric of a self-test must have the host top, not core$"
    ):
        self_test(fabric, 4)
