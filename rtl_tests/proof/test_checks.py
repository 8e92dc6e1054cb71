"""Each check of the prover alone: it refutes the mutants that it is meant for.

A whole proof stops at the first of several checks that find a fault. These tests therefore call
each check on a mutant that it must find, and prove nothing else.
"""

from dataclasses import replace
from itertools import islice

import hardware_mutants as mutants
import numpy as np
import pytest
from netlist_mutants import LATE, OPERAND, ROM_BIT, STUCK, SWAPPED, mutations, with_netlist

from torusfabric.adapters.loading.claims import compare_modules
from torusfabric.adapters.streams.claims.tables import check_tables
from torusfabric.proof.alike import check_alike
from torusfabric.proof.gate_program import GateProgram
from torusfabric.proof.gates import Gate, GateModule, Ram, read_gates
from torusfabric.proof.lemmas import module_claims, word_claim
from torusfabric.proof.report import Refuted
from torusfabric.proof.roms import check_roms
from torusfabric.proof.solver import prove_harness
from torusfabric.proof.symbols import UNKNOWN
from torusfabric.proof.units import find_operators, link_harnesses
from torusfabric.proof.whole import AllRunsProof
from torusfabric.rtl.netlist import Role
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


def gates_of(fabric, design):
    """Read a design as gates."""
    operators = find_operators(fabric, design)
    return read_gates(design, fabric.netlist.roles, Cache(), operators=operators)


def mutants_in(kind, mutation, place):
    """Return a fabric of a kind, and an iterator over its mutants with a mutation at a location."""
    fabric = mutants.simulated(kind)[0]
    every = [each for each in mutations(fabric.netlist)
             if each.kind == mutation and each.place.startswith(place)]  # fmt: skip
    return fabric, (with_netlist(fabric, each.change) for each in every)


def test_a_rom_without_its_last_row_is_refuted():
    """A ROM whose last row is missing in the Verilog is refuted."""
    fabric = mutants.simulated("circuits")[0]
    text = gates_of(fabric, mutants.design_of(fabric))
    assert check_roms(fabric, text) > 0
    roms = fabric.netlist.instances_with_role(Role.ROM)
    rom = next(each for each in roms if len(each.contents) > 1)
    there = text.instances[rom.name]
    text.instances[rom.name] = there._replace(rom=there.rom[rom.width :])
    with pytest.raises(Refuted) as found:
        check_roms(fabric, text)
    assert "missing" in found.value.counterexample.message


#: Mutations that a wiring check finds without whole runs and solvers, with the name of the check.
COMPARED = {
    "a word of the tree": ("tables", OPERAND, "read_merge_1_{}", "read tree"),
    "a register of the control": ("tables", LATE, "control_stage", "control tree"),
    "a register of the host port": ("tables", LATE, "host", "host"),
    "a node that is written": ("tables", OPERAND, "host", "host"),
}


@pytest.mark.parametrize("what", COMPARED)
def test_comparisons(what):
    """The wiring check refutes the first mutant that simulation notices."""
    *names, wanted = COMPARED[what]
    fabric, every = mutants_in(*names)
    noticed = next(each for each in every if mutants.noticed(
        lambda one=each: mutants.seen_by_simulation(one)))  # fmt: skip
    text = gates_of(fabric, mutants.design_of(noticed))
    lemma = next(
        each for each in fabric.interface.wiring_claims(fabric, text) if each.name == wanted
    )
    with pytest.raises(Refuted) as found:
        lemma.check()
    assert found.value.counterexample.message


#: Mutations that no run may reach: kind of fabric, mutation, location, number of the mutant at the
#: location, the claim that fails, and its message.
UNREACHED = {
    "a row of a ROM at a node": (
        "engines", ROM_BIT, "rom_router_0_table_0_{}, number 5, row 14", 0,
        "rom", "Row 14 of the ROM rom_router_0_table_0_5 must be",
    ),
    "a row of a ROM inside a module": (
        "tables", ROM_BIT, "sequencer, memory table_0, row 1", 0,
        "rom", "Row 1 of the ROM table_0 of sequencer must be",
    ),
    "an arc beside another": (
        "sums", SWAPPED, "combiner_at_{}, number 5, rx", 0,
        "wiring", "must have the word of arc 2:-0",
    ),
    "a link beside another": (
        "long links", SWAPPED, "router_at_{}, number 2, rx", 0,
        "wiring", "must have the word of arc 5:.0",
    ),
    "a router that is late": (
        "circuits", LATE, "router_2, rtl/core/router.py", 0,
        "selections", "Out-port 1 of router_2 must select word",
    ),
    "a node that the control does not hear": (
        "streams", OPERAND, "readiness_1_0, number 0, bad, part 0", 0,
        "stream control", "bad of the_stream_control must be wired to bad_0",
    ),
    "nodes that are not told what is wrong": (
        "streams", STUCK, "unloader_at_{}, run_empty, part 0, bit 0 of all at 0", 0,
        "stream control", "run_empty of unloader_at_0 must be wired to run_empty",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNREACHED)
def test_what_runs_need_not_notice(what):
    *names, number, wanted, message = UNREACHED[what]
    fabric, every = mutants_in(*names)
    text = gates_of(fabric, mutants.design_of(next(islice(every, number, None))))
    lemmas = (
        word_claim(fabric, text),
        *fabric.interface.wiring_claims(fabric, text),
        *module_claims(fabric, text),
    )
    lemma = next(each for each in lemmas if each.name == wanted)
    with pytest.raises(Refuted, match=message):
        lemma.check()


@pytest.mark.parametrize(
    ("kind", "module"),
    [("tables", "sequencer"), ("tables", "endpoint_0"), ("streams", "own_block")],
)
def test_whole_runs(kind, module):
    """Whole runs refute mutants inside a module that simulation notices."""
    fabric = mutants.hardware(kind)
    sampled = mutants.sampled(fabric.netlist, 20, 5, of=module)
    every = (with_netlist(fabric, each.change) for each in sampled)
    noticed = (each for each in every if mutants.noticed(
        lambda one=each: mutants.seen_by_simulation(one)))  # fmt: skip
    for mutant in islice(noticed, 2):
        whole = AllRunsProof(fabric, gates_of(fabric, mutants.design_of(mutant)))
        with pytest.raises(Refuted):
            whole.prove(lambda *_: None)


@pytest.mark.parametrize("engine", ["loader", "unloader"])
def test_a_wrong_row_of_a_packet_table_is_refuted(engine):
    """A wrong bit in the packet table of one node is refuted."""
    fabric = mutants.hardware("streams")
    shape = fabric.netlist.modules[engine]().shape
    assert check_tables(fabric.core, shape) > 0
    shape.packet_table.rom_rows[4, 2] ^= 1
    with pytest.raises(Refuted, match="of packet 2 that node 4"):
        check_tables(fabric.core, shape)
    shape.packet_table.rom_rows[4, 2] ^= 1


def test_links_bring_words_in_their_time():
    """Whole runs with links of one register and of several are proved."""
    fabric = mutants.hardware("long links")
    whole = AllRunsProof(fabric, gates_of(fabric, mutants.design_of(fabric)))
    assert whole.prove(lambda *_: None) > 0


@pytest.mark.parametrize("port", ["host_we", "host_node", "host_addr", "host_wdata"])
def test_the_host_port_is_given_what_the_host_asks_for(port):
    fabric = mutants.hardware("tables")
    design = mutants.design_of(fabric)
    top = design.modules["fabric"].replace(f".{port}({port})", f".{port}(~{port})")
    wrong = replace(design, modules=design.modules | {"fabric": top})
    (tree,) = (lemma for lemma in fabric.interface.wiring_claims(fabric, gates_of(fabric, wrong))
               if lemma.name == "control tree")  # fmt: skip
    with pytest.raises(Refuted, match=f"{port} of the_host must be wired to {port}"):
        tree.check()


def test_rows_of_a_rom_are_those_of_its_text():
    """A module of all ROMs that permutes the rows is refuted."""
    fabric = mutants.hardware("engines")
    design = mutants.design_of(fabric)
    other = design.modules["rom"].replace("rows[address]", "rows[address ^ 1'b1]")
    wrong = replace(design, modules=design.modules | {"rom": other})
    with pytest.raises(Refuted):
        AllRunsProof(fabric, gates_of(fabric, wrong)).prove(lambda *_: None)


def test_the_same_whatever_is_loaded():
    fabric, every = mutants_in("loading", SWAPPED, "combiner")
    written, wrong = map(mutants.design_of, (fabric, next(every)))
    with pytest.raises(Refuted):
        compare_modules(written, wrong, fabric.netlist.roles)


def test_a_bit_that_is_not_as_the_others_is_refuted():
    gates = [Gate("NOT", 5, 2), Gate("NOT", 6, 3)]
    ports = {"rx": [2, 3, 4]}, {"tx": [5, 6, 4]}
    with pytest.raises(Refuted, match="Bit 2 of words of tx of router must be as bit 0 is"):
        check_alike(GateModule("router", *ports, gates=gates), ["rx", "tx"], 3, range(3))
    whole = GateModule("router", ports[0], {"tx": [5, 6, 7]}, gates=[*gates, Gate("NOT", 7, 4)])
    assert check_alike(whole, ["rx", "tx"], 3, range(3)) == 2


def test_a_link_that_is_late_is_refuted():
    fabric, every = mutants_in("long links", LATE, "link_7")
    found = {each.name: each for each in link_harnesses(fabric, mutants.design_of(next(every)))}
    assert prove_harness(found["link_7"]).failed is not None
    assert prove_harness(found["link_2"], Cache()).failed is None


def test_a_write_to_an_unknown_address_is_one_to_all_that_it_can_be():
    """A write to an unknown address makes every word unknown that it may have changed."""
    ram = Ram(4, 1, "", [([6, 7], [8])], [([2, 3], [4], [5])], collides=False)
    inputs = {"at": [2, 3], "data": [4], "enable": [5], "asked": [6, 7]}
    program = GateProgram(GateModule("memory", inputs, {"word": [8]}, rams=[ram]), {"word": [0]})
    state = program.unknown_state(1)

    def written(at, data, enable=1):
        bits = {"at": at, "data": [data], "enable": [enable]}
        given = {name: np.array(value, np.int32)[:, None] for name, value in bits.items()}
        return program.next_state(program.cycle_bits(state, given), state)

    def words():
        asked = ([number & 1, number >> 1] for number in range(4))
        read = (program.cycle_bits(state, {"asked": np.array(bits)[:, None]}) for bits in asked)
        return [int(program.outputs_of(each, "word")[0, 0]) for each in read]

    for number in range(4):
        state = written([number & 1, number >> 1], 1)
    assert words() == [1, 1, 1, 1]
    state = written([UNKNOWN, 1], 0, enable=0)
    assert words() == [1, 1, 1, 1]
    state = written([UNKNOWN, 1], 0)
    assert words() == [1, 1, UNKNOWN, UNKNOWN]
