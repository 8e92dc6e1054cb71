"""Circuit-switched collectives in hardware: words, cycles and rounds."""

import json

import numpy as np
import pytest
from helpers import (
    cycles_of_rounds,
    program_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.analysis.check import check
from torusfabric.analysis.cost import schedule_cost
from torusfabric.cli import main
from torusfabric.program import Action
from torusfabric.program.send_order import Location, arrange_messages
from torusfabric.rtl.core.places import SequencerSignals
from torusfabric.rtl.core.rows import NodeKinds, Rows
from torusfabric.rtl.core.store_plan import plan_stores
from torusfabric.schedule.transfers import Listed

#: Topology, collective, algorithm, options.
SCHEDULES = [
    *((sides, "broadcast", algorithm, {"ports": ports, "root": 3 * ports})
      for sides in ("5x5", "5x7", "6x8") for algorithm in ("diagonal", "max-flow")
      for ports in (1, 2, 3, 4)),
    ("5x5", "broadcast", "lee-code", {}),
    ("4x4", "broadcast", "max-flow", {"broken_links": ((9, 0), (12, 2), (15, 3))}),
    ("3x3x3", "broadcast", "max-flow", {"ports": 5, "root": 13}),
    ("arrowhead:2", "broadcast", "max-flow", {}),
    ("arrowhead:2", "broadcast", "wormhole-forest", {"ports": 3, "root": 11}),
    ("4x4", "gather", "diagonal", {"root": 5}),
    ("4x4", "gather", "max-flow", {"ports": 1}),
    ("5x5", "gather", "lee-code", {"root": 24}),
    ("5x7", "gather", "max-flow", {"ports": 3, "root": 17}),
]  # fmt: skip


def bounds_of_rounds(schedule, flits):
    """Return the least and the most cycles of a schedule in rounds.

    A round takes at least its slowest transfer, and at most its longest path and its longest
    message together. Both bounds are equal if all messages of a round have one length.
    """
    found, shortest = check(schedule), 3
    of_rounds = zip(schedule.rounds(), found.round_hops, found.round_blocks, strict=True)
    for transfers, hops, blocks in of_rounds:
        slowest = hops + blocks * flits // schedule.chunks
        if isinstance(transfers.payload, Listed):
            blocks_of = np.diff(transfers.payload.indptr)
            slowest = (transfers.lengths + blocks_of * flits // schedule.chunks).max()
        shortest += 1 + slowest
    return shortest, cycles_of_rounds(schedule, flits)


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), SCHEDULES)
def test_every_round_is_as_short_as_its_own_path_and_message(
    topology, collective, algorithm, options
):
    program = program_of(topology, collective, algorithm, flits=2, **options)
    shortest, longest = bounds_of_rounds(program.schedule, 2)
    assert shortest <= program.cycles() <= longest
    if collective == "gather":
        # Memories hold exactly the messages that arrive, of two flits each.
        depth = program.depth[program.variant_of]
        assert depth[options.get("root", 0)].sum() == 2 * program.topology.nodes
        received = [not memory.own for memory in program.memories]
        moved = sum(len(t.payload.ids) for t in program.schedule.rounds())
        assert depth[:, received].sum() == 2 * moved


@pytest.mark.parametrize(("large", "depth"), [(False, [343, 344]), (True, [343, 344])])
def test_lee_code_memories(large, depth):
    """A node of 7x7x7 needs one memory for each in-port and one for its own message.

    With large messages a code node sends six pieces at once, each from a bank of its own at any
    time. Nothing is stored twice, except a neighbour's own block in the piece that the neighbour
    gets.
    """
    program = program_of("7x7x7", "allgather", "lee-code", large=large)
    rows = Rows(program)
    stores = plan_stores(rows, NodeKinds(rows), SequencerSignals(), idles=True, port=None, beat=1)
    assert program.loop.n_variants == 7
    copies = [
        sum(len(bank.members) * len(bank.copies) for bank in store.shape.banks) for store in stores
    ]
    assert max(copies) == program.ports + 1
    assert sorted(set(program.depth.sum(axis=1).tolist())) == depth
    assert program.cycles() == 3 + (5 + 13 + 155 if large else 4 + 12 + 400)
    read = np.stack([field.values for field in program.loop.fields_of_action(Action.READ)]) >= 0
    bursts = read[:, :, program.variant_of[0]].sum(axis=1)
    assert (program.loop.n_rows, sorted(bursts.tolist())) == (
        (83, [13] * 5 + [82]) if large else (22, [21])
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_arranged_messages_never_meet(data):
    """Messages of equal length that fit are ordered so that no two read a memory at once."""
    injections = data.draw(st.integers(2, 5))
    memories = data.draw(st.integers(injections, 6))
    length = data.draw(st.integers(1, 12))
    # Messages fit exactly if they are part of a sum of permutations.
    orders = [data.draw(st.permutations(range(memories))) for _ in range(length)]
    chosen = [[order[number] for order in orders] for number in range(injections)]
    locations, messages = {}, []
    for row in chosen:
        messages.append(list(range(len(locations), len(locations) + length)))
        locations |= {
            block: Location(memory, block) for block, memory in zip(messages[-1], row, strict=True)
        }
    arranged = arrange_messages(
        [sorted(m, key=lambda b: locations[b]) for m in messages], locations
    )
    assert [sorted(message) for message in arranged] == messages
    for at_once in zip(*arranged, strict=True):
        assert len({locations[block].memory for block in at_once}) == injections


def test_messages_that_cannot_be_arranged():
    """If two injection ports always need one memory, the order stays and the memory is copied."""
    locations = {block: Location(0, block) for block in range(4)}
    assert arrange_messages([[0, 1], [2, 3]], locations) == [[0, 1], [2, 3]]


def test_rooted_program_on_data():
    """The executed program spreads the message of any root, in the cycles of a fixed root."""
    program = program_of("3x5", "broadcast", "max-flow", flits=3, root="any")
    assert program.cycles() == program_of("3x5", "broadcast", "max-flow", flits=3).cycles()
    messages = np.arange(45).reshape(15, 3)
    for root in range(15):
        assert (program.execute(messages, root=root) == messages[root]).all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate", "4x4", "allgather"),
         "Root any needs a broadcast, scatter, gather or reduce, not allgather; leave the root "
         "out"),
        (("synth", "4x4", "alltoall", "--target", "ice40-hx8k"),
         "Root any needs a broadcast, scatter, gather or reduce, not alltoall; leave the root "
         "out"),
        (("plan", "4x4", "broadcast"),
         "Root any is for hardware, which takes a root at each start; for a single schedule give a "
         "node number"),
        (("simulate", "4x4", "broadcast", "--algorithm", "max-flow", "--broken-link", "3:+0"),
         "Root any needs a network that looks the same from every node, which 4x4!3:+0 does not; "
         "give a node number"),
    ],
)  # fmt: skip
def test_root_that_cannot_be_open(capsys, words, said):
    """`--root any` is refused with one line where it makes no sense."""
    assert main([*words, "--root", "any"]) == 1
    assert capsys.readouterr().err == f"torusfabric: {said}\n"


def test_simulate_command_with_any_root(capsys):
    """`simulate --root any` runs several roots and prints the cost formula."""
    words = ["simulate", "4x4", "broadcast", "--algorithm", "max-flow", "--flits", "4"]
    assert main([*words, "--root", "any", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["roots"]) == 8
    assert report["words_checked"] == 8 * 16 * 4
    assert report["words_wrong"] == 0
    constants = {key: report[key] for key in ("alpha", "hop_cycles", "flit_cycles")}
    assert constants == {"alpha": 1, "hop_cycles": 1, "flit_cycles": 1}
    assert report["constant_cycles"] == 3
    assert report["cycles"] == report["rounds"] + report["delta"] + 4 * report["tau"] + 3
    assert f"= {report['cycles']} cycles" in report["cost_formula"]


@pytest.mark.parametrize(
    ("selection", "flits"),
    [
        (("4x4", "allgather", "hamiltonian"), 6),
        (("5x5", "allgather", "one-packet"), 3),
        (("4x4", "broadcast", "diagonal"), 3),
        (("4x5", "gather", "max-flow"), 2),
        (("3x3", "allgather", "matching"), 2),
    ],
)
def test_cost_formula(selection, flits):
    """The papers' cost formula with the hardware's constants gives the cycles, term by term."""
    program = program_of(*selection, flits=flits)
    cost, paper = program.form.cost, schedule_cost(program.schedule)
    assert cost.cycles == program.cycles()
    assert (cost.rounds, cost.flits) == (paper.rounds, paper.tau * flits)
    if paper.switching == "circuit":
        # In the last round of this gather, the longest path carries a shorter message.
        constant = 2 if selection[1] == "gather" else 3
        assert (cost.hops, cost.constant_cycles) == (paper.delta, constant)
        assert str(cost).startswith("alpha rounds + delta hops + tau flits + constant = 1 * ")
    else:
        assert (cost.alpha, cost.hop_cycles, cost.flit_cycles) == (0, 0, 1)
        assert str(cost).startswith("tau flits + constant = 1 * ")
    if selection[2] == "hamiltonian":
        assert cost.constant_cycles == 5
