"""Each check of the prover by itself: it notices what it is for, by the name of that.

A whole proof finds most faults by several of its checks, and ends with the first; so each is asked
here for a fault that it has to find, and nothing else is proved.
"""

from functools import partial

import numpy as np
import pytest
from planted import Fault, fabric_of, names, planted, text_of

from torusfabric.proof.alike import alike
from torusfabric.proof.gate_program import GateProgram
from torusfabric.proof.gates import WORDS, GateModule, Ram, read_gates
from torusfabric.proof.host import check_host
from torusfabric.proof.prove import check_same
from torusfabric.proof.report import Refuted
from torusfabric.proof.roms import check_roms
from torusfabric.proof.routers import link_harnesses, router_harnesses
from torusfabric.proof.solver import solve
from torusfabric.proof.symbols import UNKNOWN
from torusfabric.proof.whole import Whole
from torusfabric.proof.wiring import check_distribution, check_tree, check_wiring
from torusfabric.rtl.netlist import Role
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


def gates_of(name, design):
    """A text as gates."""
    fabric = fabric_of(name)
    roles = {fabric.prefix + module: role for module, role in fabric.netlist.roles.items()}
    closed = [module for module, role in roles.items() if role is Role.STREAM]
    return read_gates(design, roles, Cache(), closed=closed)


def refuted_by(check):
    """What a check refutes."""
    with pytest.raises(Refuted) as found:
        check()
    return found.value.counterexample


def whole_of(name, design):
    """All runs of a text."""
    return Whole(fabric_of(name), gates_of(name, design)).prove(lambda *_: None)


#: Faults in what only whole runs show, and the signal by which they do.
RUNS = (
    ("done", Fault("table", "sequencer", r"else if \(busy\) begin", r"\g<0> done <= running;")),
    ("busy", Fault("table", "sequencer", r"~stages\[4\]", "~stages[3]")),
    ("cycles", Fault("table", "sequencer", r"cycles\[3:0\] \+ 4'd1", "cycles[3:0] + 4'd2")),
    ("received word", Fault(
        "table", "endpoint_0", r"bank_4\[(\w+\[1:0\])\]", r"bank_4[\1 ^ 1'd1]"
    )),
    # At the last node alone.
    ("received word", Fault(
        "table", "fabric", r"(endpoint_at_5 \([^;]*\.rx\(\{)(\S+), (\S+),", r"\1\3, \2,"
    )),
    ("a node", Fault("table", "endpoint_0", r"write_node == node", "write_node >= node")),
    ("read_data of endpoint_0", Fault(
        "table", "endpoint_0", r"~\(read_node == node", "~(read_node >= node"
    )),
    ("error", Fault("engine", "sequencer", r"refused\[0\] \? 4'd3", "refused[0] ? 4'd4")),
    ("done of sequencer", Fault(
        "engine", "sequencer", r"else if \(busy\) begin",
        r"else if (start & ~busy) done <= 1'd0; \g<0>",
    )),
    ("rx_enable", Fault("streaming core", "sequencer", r"store_0 <= (\w+);", r"store_0 <= ~\1;")),
    ("section", Fault(
        "streams", "endpoint_0", r"section <= (section .*);", r"section <= ~(\1);"
    )),
    # Written and read alike, but what comes later is where what waits is.
    ("received word", Fault(
        "streams", "endpoint_0", r"(?s)kept\[\{write_section, (.*)kept\[\{read_section, ",
        r"kept[{1'd0, write_section[0], \1kept[{1'd0, read_section[0], ",
    )),
)  # fmt: skip


@pytest.mark.parametrize(("signal", "fault"), RUNS, ids=names([fault for _, fault in RUNS]))
def test_whole_runs(signal, fault):
    wrong = refuted_by(partial(whole_of, fault.fabric, planted(fault)))
    assert wrong.signal.startswith(signal)


def test_links_bring_words_in_their_time():
    """What whole runs make of links is what is proved of them: of one register, and of several."""
    assert whole_of("long links", text_of("long links")) > 0


def of_text(check):
    """A check of a fabric and its text as gates."""
    return lambda name, design: check(fabric_of(name), gates_of(name, design))


def alike_in(module):
    """That a module treats all bits of words alike."""
    return lambda name, design: alike(
        gates_of(name, design).modules[module], WORDS, fabric_of(name).width
    )


#: Faults that are found without whole runs and solvers, and what finds them.
COMPARED = {
    "a word of the tree": (
        Fault("table", "read_merge_4", r"\|", "&"), of_text(check_tree)
    ),
    "two bits of a word": (
        Fault("table", "fabric", r"\(inject_0\)",
              "({inject_0[11:9], inject_0[7], inject_0[8], inject_0[6:0]})"),
        of_text(check_wiring),
    ),
    "a register of the control": (
        Fault("table", "control_stage", "<= write_data;", "<= ~write_data;"),
        of_text(check_distribution),
    ),
    "a bit of a router": (
        Fault("pattern", "router_0", r"tx <= (\{[^}]*\});", r"tx <= \1 ^ 12'h800;"),
        alike_in("router_0"),
    ),
    "a row of a ROM": (
        Fault("engine", "rom", r"data <= rows\[address\];", "data <= rows[address ^ 1'b1];"),
        lambda name, design: check_roms(gates_of(name, design), design),
    ),
    "a register of the host port": (
        Fault("table", "host", r"write_data <= (\w+);", "write_data <= host_wdata;"),
        of_text(check_host),
    ),
    "a node that is written": (
        Fault("table", "host", r"write_enable <= \{(.*), (.*)\};", r"write_enable <= {\2, \1};"),
        of_text(check_host),
    ),
    "what is loaded": (
        Fault("loaded sums", "combiner", r"\{inject, result\}", "{result, inject}", 1),
        lambda name, design: check_same(fabric_of(name), design),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", COMPARED)
def test_comparisons(what):
    fault, check = COMPARED[what]
    assert refuted_by(lambda: check(fault.fabric, planted(fault))).message


def test_a_link_that_is_late_is_refuted():
    fault = Fault("long links", "link_7", r"at >= 3'd5", "at >= 3'd4")
    found = {each.name: each for each in link_harnesses(fabric_of(fault.fabric), planted(fault))}
    assert solve(found["link_7"]).failed.name == "words_come_out_in_time"
    assert solve(found["link_2"], Cache()).failed is None


def test_a_router_that_does_not_wait_is_refuted():
    fault = Fault("pattern", "router_0", r"\.given\(enable\)", ".given(1'b1)")
    first, *_ = router_harnesses(fabric_of(fault.fabric), planted(fault))
    assert solve(first).failed.name.endswith("_waits_while_not_enabled")


def test_a_write_to_an_unknown_address_is_one_to_all_that_it_can_be():
    """What may have been written is not known; what cannot have been stays."""
    ram = Ram(4, 1, "", [([6, 7], [8])], [([2, 3], [4], [5])], collides=False)
    inputs = {"at": [2, 3], "data": [4], "enable": [5], "asked": [6, 7]}
    program = GateProgram(GateModule("memory", inputs, {"word": [8]}, rams=[ram]), {"word": [0]})
    state = program.unknown(1)

    def written(at, data, enable=1):
        bits = {"at": at, "data": [data], "enable": [enable]}
        given = {name: np.array(value, np.int32)[:, None] for name, value in bits.items()}
        return program.after(program.values(state, given), state)

    def words():
        asked = ([number & 1, number >> 1] for number in range(4))
        read = (program.values(state, {"asked": np.array(bits)[:, None]}) for bits in asked)
        return [int(program.outputs_of(each, "word")[0, 0]) for each in read]

    for number in range(4):
        state = written([number & 1, number >> 1], 1)
    assert words() == [1, 1, 1, 1]
    state = written([UNKNOWN, 1], 0, enable=0)
    assert words() == [1, 1, 1, 1]
    state = written([UNKNOWN, 1], 0)
    assert words() == [1, 1, UNKNOWN, UNKNOWN]
