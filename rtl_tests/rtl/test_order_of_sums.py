"""Sums by an operator that is not associative: model and hardware combine words in one order.

The saturating sum of 3 bits clips at 3 and -4, so that another order gives another sum for many
words. `tf.simulate` compares the hardware with the executed program; the order of the program is
compared with the trees below.
"""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module, Mux, Value
from core_bench import run_core
from helpers import few, random_messages

import torusfabric as tf
from torusfabric.adapters.boards.drive import simulate_boards
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.collective import Operator, combine_in_tree, operators, tree_levels
from torusfabric.rtl.modules import delay_value
from torusfabric.topology.boards import Boards

WIDTH, TOP = 3, 4


def saturated(a: np.ndarray, b: np.ndarray, width: int) -> np.ndarray:
    """Return the signed sums of words, clipped to the range of `WIDTH` bits."""
    signed = ((np.array(word, np.int64) ^ TOP) - TOP for word in (a, b))
    return (np.clip(sum(signed), -TOP, TOP - 1) & (2 * TOP - 1)).astype(a.dtype)


def saturated_hardware(m: Module, a: Value, b: Value) -> Value:
    total = a.as_signed() + b.as_signed()
    return Mux(total >= TOP, TOP - 1, Mux(total < -TOP, TOP, total))[:WIDTH]


def slow_hardware(m: Module, a: Value, b: Value) -> Value:
    return delay_value(m, saturated_hardware(m, a, b), 2)


def operator(name: str, hardware, latency: int = 0) -> Operator:
    return Operator(
        name, saturated, lambda width: 0, hardware, latency=latency, widths=(WIDTH,),
        associative=False,
    )  # fmt: skip


SATURATED, SLOW = operator("sat", saturated_hardware), operator("slow", slow_hardware, latency=2)


def star(leaves: int) -> tf.Graph:
    """A graph with node 0 in the middle and `leaves` other nodes."""
    return tf.Graph([arc for leaf in range(1, leaves + 1) for arc in ((0, leaf), (leaf, 0))])


def compiled(topology, collective, algorithm=None, *, flits=8, most=None, root=None,
             op=SATURATED, **options):  # fmt: skip
    """A program of one schedule, for `flits` flits a chunk or any length up to `most`."""
    named = {"algorithm": algorithm} if algorithm else {}
    schedule = tf.plan(topology, collective, **named, **options)
    length = {"max_flits": most} if most else {"flits": flits * schedule.chunks}
    return tf.compile(schedule, operators=[op], root=root, **length)


def several(topology, *names, most=4, **options):
    """A program of several schedules whose algorithms add in different orders."""
    plans = [tf.plan(topology, collective, algorithm=name) for collective, name in names]
    return tf.compile(plans, max_flits=most, operators=[SATURATED], **options)


def forms_of_a_mode():
    """A program with a mode of two forms, one for short messages and one for long ones."""
    plans = [tf.plan("3", "allreduce", algorithm=name) for name in ("matching", "necklace")]
    program = tf.compile([plans, tf.plan("3", "gather")], max_flits=12, operators=[SATURATED])
    assert program.form_of(0, 1) != program.form_of(0, 12)
    return program


#: A program for each way in which words are combined.
FORMS = {
    "star of 3": lambda: compiled(star(3), "reduce"),
    "star of 4, any length": lambda: compiled(star(4), "reduce", most=8),
    "circuits": lambda: compiled("3x3", "reduce", "max-flow"),
    "circuits in several rounds": lambda: compiled("3x3", "reduce", "diagonal"),
    "mesh": lambda: compiled("mesh:2x2", "allreduce", flits=1),
    "broken node": lambda: compiled("2x3!1", "reduce-scatter", flits=2),
    "complete graph": lambda: compiled("complete:5", "reduce", flits=2),
    "trees": lambda: compiled("3x3", "allreduce", "spanning-tree", flits=2),
    "table": lambda: compiled("2x3", "reduce-scatter", "matching", flits=2),
    "table, any length": lambda: compiled("3", "allreduce", "matching", most=7),
    "necklace": lambda: compiled("3x3", "reduce-scatter", "necklace", flits=2),
    "in each row": lambda: compiled("3x3x2", "reduce@0+1", "max-flow", flits=2),
    "long links": lambda: compiled(tf.Torus(3, 3, link_latency=3), "reduce", "diagonal"),
    "unequal links": lambda: compiled(
        tf.Torus(3, 3, link_latency=(1, 3)), "reduce-scatter", "matching", flits=2
    ),
    "any root, circuits": lambda: compiled("2x3", "reduce", "max-flow", most=4, root="any"),
    "any root, trees": lambda: compiled("2x3", "reduce", "spanning-tree", most=4, root="any"),
    "modes": lambda: several(
        "3x3", ("reduce", "diagonal"), ("reduce", "max-flow"), ("reduce-scatter", "necklace")
    ),
    "modes, any root": lambda: several(
        "2x3", ("reduce", "max-flow"), ("gather", "farthest-first"), root="any"
    ),
    "forms": forms_of_a_mode,
    "slow": lambda: compiled(star(4), "reduce", op=SLOW),
    "slow, any length": lambda: compiled("3x3", "reduce", "diagonal", most=16, op=SLOW),
    "slow, on a mesh": lambda: compiled("mesh:2x2", "allreduce", flits=16, op=SLOW),
    "slow, in shares": lambda: compiled("mesh:3x3", "reduce-scatter", flits=16, op=SLOW),
}  # fmt: skip


#: Programs for the long tests, because they resemble others.
LONG = {"star of 3", "complete graph", "trees", "table", "in each row", "unequal links",
        "any root, trees", "modes, any root", "slow, on a mesh", "slow, in shares"}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in FORMS]
)
def test_hardware_combines_as_executed(name: str) -> None:
    assert tf.simulate(tf.Fabric(FORMS[name](), width=WIDTH)).passed


@pytest.mark.parametrize("name", few(2, ["star of 4, any length", "circuits", "modes", "forms"]))
def test_streams_combine_as_executed(name: str) -> None:
    assert tf.simulate(tf.Fabric(FORMS[name](), width=WIDTH, top="stream")).passed


@pytest.mark.parametrize("name", ["star of 3", "circuits", "table"])
def test_cores_combine_as_executed(name: str) -> None:
    fabric = tf.Fabric(FORMS[name](), width=WIDTH, top="core")
    messages = random_messages(fabric, 1)
    words, receives = fabric.delivered(np.array(messages, np.uint64))
    assert (run_core(fabric, messages)[receives] == words[receives]).all()


def test_loaded_tables_combine_as_executed(monkeypatch) -> None:
    # An image stores only the name of its operator.
    monkeypatch.setitem(operators.REGISTERED, "sat", SATURATED)
    program = compiled("2x2", "reduce-scatter", "matching", most=8)
    assert tf.simulate(tf.Fabric(program, width=WIDTH, tables="ram")).passed


def test_several_boards_combine_as_executed() -> None:
    torus = tf.Torus(4, 2, link_latency=(9, 1))
    fabric = tf.Fabric(compiled(torus, "allreduce", "matching", most=16), width=WIDTH)
    assert simulate_boards(BoardSystem(fabric, Boards.parse("2x1", torus)), jobs=3).passed


#: The tree for each number of words, as written in the documentation.
TREES = {
    2: (0, 1),
    3: ((0, 1), 2),
    4: ((0, 1), (2, 3)),
    5: (((0, 1), (2, 3)), 4),
    6: (((0, 1), (2, 3)), (4, 5)),
    7: (((0, 1), (2, 3)), ((4, 5), 6)),
    8: (((0, 1), (2, 3)), ((4, 5), (6, 7))),
    9: ((((0, 1), (2, 3)), ((4, 5), (6, 7))), 8),
}


def sum_by_hand(tree, words: np.ndarray) -> np.ndarray:
    """The sum of rows of words in the order of a tree."""
    if isinstance(tree, int):
        return words[tree]
    return saturated(*(sum_by_hand(part, words) for part in tree), WIDTH)


@pytest.mark.parametrize("count", TREES)
def test_the_tree_of_the_documentation(count: int) -> None:
    assert combine_in_tree(range(count), lambda a, b: (a, b)) == TREES[count]

    def levels(tree) -> int:
        return 0 if isinstance(tree, int) else 1 + max(map(levels, tree))

    assert tree_levels(count) == levels(TREES[count])


@pytest.mark.parametrize("leaves", [2, 3, 5, 8])
def test_the_middle_of_a_star_adds_in_a_tree(leaves: int) -> None:
    """The middle of a star adds its own word first, then the leaves in the order of memories."""
    program = compiled(star(leaves), "reduce", flits=400)
    words = np.random.default_rng(leaves).integers(0, 2 * TOP, (leaves + 1, 400), np.uint64)
    (readers,) = program.loop.sources.injections
    read = [program.loop.field(tf.program.fields.Action.MEMORY, reader) for reader in readers]
    own = program.variant_of[0]
    ports = [int(field.values[:, own].max()) for field in read[1:]]
    leaf = program.topology.upstream[0][0, ports]
    ordered = words[[0, *leaf]]
    got = program.execute(words, width=WIDTH)[0]
    assert (got == sum_by_hand(TREES[leaves + 1], ordered)).all()
    if leaves > 2:
        chain = ordered[0]
        for row in ordered[1:]:
            chain = saturated(chain, row, WIDTH)
        assert (got != chain).any()


ALLREDUCES = [
    ("mesh:2x3", None),
    ("mesh:2x2", None),
    ("3x3", "matching"),
    ("3x3", "spanning-tree"),
    ("complete:4", None),
    ("3x3!4", None),
    (star(4), None),
]


@pytest.mark.parametrize(("topology", "algorithm"), ALLREDUCES, ids=str)
def test_nodes_agree_on_an_allreduce(topology, algorithm) -> None:
    program = compiled(topology, "allreduce", algorithm, flits=16)
    shape = program.topology.nodes, program.send_words
    words = np.random.default_rng(1).integers(0, 2 * TOP, shape, np.uint64)
    received = program.execute(words, width=WIDTH)
    assert all((one == other).all() for one, other in pairwise(received))


def test_an_allreduce_is_refused_if_nodes_would_differ() -> None:
    with pytest.raises(tf.InputError, match="needs an associative operator, not sat, because"):
        compiled("4x4", "allreduce", "ring-exchange")


def test_an_operator_may_be_a_partial_function(tmp_path: Path) -> None:
    """A fabric accepts an operator that is a partial function, and its manifest names no function
    for the bench.
    """
    add = Operator.parse("add")
    half = Operator("half", partial(add.function), add.identity, add.hardware)
    fabric = tf.Fabric(tf.compile(tf.plan("3", "allreduce"), operators=half), width=8)
    tf.emit(fabric).write(tmp_path)
    assert "operator_functions" not in (tmp_path / "manifest.json").read_text()


def test_operators_are_tried_before_they_are_used() -> None:
    """A wrong operator is refused when it is compiled, also without registration."""
    schedule = tf.plan("3", "allreduce")
    lies = {
        "commutative": {"function": lambda a, b, width: np.where(a > 0, a, b)},
        "an identity": {"identity": lambda width: 1},
        "associative": {"associative": True},
    }
    for claim, part in lies.items():
        chosen = Operator(
            **{"name": "liar", "function": saturated, "identity": lambda width: 0,
               "hardware": saturated_hardware, "widths": (WIDTH,), "associative": False} | part
        )  # fmt: skip
        with pytest.raises(tf.InputError, match=f"^Operator liar must .*{claim}"):
            tf.compile(schedule, operators=[chosen])
    first = Operator("first", lambda a, b, width: a, lambda width: 0, saturated_hardware,
                     commutative=False)  # fmt: skip
    with pytest.raises(tf.InputError, match=r"^Operator first must be commutative"):
        tf.compile(schedule, operators=first)
    with pytest.raises(tf.InputError, match=r"^Name of an operator must be a new one, not 'add'"):
        tf.compile(schedule, operators=operator("add", saturated_hardware))
