"""Calls of the Python interface in which one parameter has a wrong type, or is out of range."""

import inspect
import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import torusfabric as tf
from torusfabric.adapters.boards.drive import simulate_boards
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.algorithms import find_algorithm
from torusfabric.analysis.facts import schedule_facts
from torusfabric.draw import draw as draw_schedule
from torusfabric.proof import prove
from torusfabric.rtl.word_path import word_path
from torusfabric.topology.boards import Boards

from .oracle import Fuzzer

__all__ = ["Call", "CallFuzzer", "all_calls", "wrong_values"]

#: Values that few parameters accept, by name. Each is made when it is needed.
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "3": lambda: 3,
    "0": lambda: 0,
    "-1": lambda: -1,
    "10**30": lambda: 10**30,
    "-(10**30)": lambda: -(10**30),
    "2**63 - 1": lambda: 2**63 - 1,
    "1.5": lambda: 1.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "1j": lambda: 1j,
    "True": lambda: True,
    "text": lambda: "x",
    "no text": lambda: "",
    "a zero byte": lambda: "a\0b",
    "a surrogate": lambda: "\udc80",
    "bytes": lambda: b"3",
    "an empty list": list,
    "a list of numbers": lambda: [5, 6],
    "a list of text": lambda: ["x"],
    "a list of None": lambda: [None],
    "a list of lists": lambda: [[1], [2, 3]],
    "a tuple": lambda: (5,),
    "a dict": lambda: {"x": 1},
    "a set": lambda: {1},
    "an object": object,
    "a class": lambda: int,
    "a function": lambda: len,
    "a function of nothing": lambda: lambda: None,
    "an iterator": lambda: iter([1, 2]),
    "an array of floats": lambda: np.array([1.5, 2.5]),
    "an array of text": lambda: np.array(["x", "y"]),
    "an array of objects": lambda: np.array([None, object()]),
    "an array without axes": lambda: np.array(3),
    "an array of three axes": lambda: np.zeros((2, 2, 2), int),
    "an empty array": lambda: np.zeros((0,), int),
    "an array of large numbers": lambda: np.array([[2**62, -(2**62)]]),
    "a topology": lambda: tf.Torus(3),
    "a collective": lambda: tf.Collective("allgather"),
    "a schedule": lambda: tf.plan("3", "allgather"),
    "a path": lambda: Path("/nowhere/x"),
}


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, or of a class with any metaclass."""
    if not isinstance(function, type) or function.__init__ is object.__init__:  # type: ignore[misc]
        return inspect.signature(function)
    whole = inspect.signature(function.__init__)  # type: ignore[misc]
    return whole.replace(parameters=[*whole.parameters.values()][1:])


class Call(NamedTuple):
    """A function, with arguments that it accepts."""

    function: Callable[..., Any]
    arguments: dict[str, Any]

    @property
    def parameters(self) -> list[str]:
        """Names of all parameters; for keyword arguments, the names that are given."""
        named = signature_of(self.function).parameters.values()
        most = [
            each.name
            for each in named
            if each.kind is not each.VAR_KEYWORD and each.name not in ("args", "kwds")
        ]
        return most + [name for name in self.arguments if name not in most]

    def __call__(self, changes: dict[str, Any]) -> Any:
        """Call the function with some arguments in place of the right ones."""
        given = self.arguments | changes
        positional = []
        for each in signature_of(self.function).parameters.values():
            if each.kind is each.VAR_POSITIONAL:
                value = given.pop(each.name, ())
                positional.extend(value if isinstance(value, tuple) else [value])
            elif each.kind is each.POSITIONAL_ONLY and each.name in given:
                positional.append(given.pop(each.name))
        return self.function(*positional, **given)  # type: ignore[no-any-return]


def checked(kind: type[tf.Schedule]) -> Callable[..., Any]:
    """Return a function that makes a schedule and checks it."""

    def make(**values: Any) -> Any:
        return tf.check(kind(**values))

    make.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return make


def wrong_values(parameter: str) -> list[str]:
    """Return the names of the values that are tried for a parameter."""
    return [name for name in WRONG if parameter != "progress" or name not in FUNCTIONS]


@cache
def all_calls(folder: Path) -> dict[str, Call]:
    """Return right calls of the public names, by name.

    Parameters
    ----------
    folder : Path
        Folder for files that the calls read and write.
    """
    return dict(_all_calls(folder))


def _all_calls(folder: Path) -> Iterator[tuple[str, Call]]:
    torus, ring = tf.Torus(2, 3), tf.Torus(3)
    gather = tf.plan(ring, "allgather", algorithm="matching")
    path = folder / "plan.json"
    gather.save(path)
    reducing = tf.plan("2x2", "allreduce")
    program = tf.compile(reducing, max_flits=4, operators="add,max")
    fabric = tf.Fabric(program, width=8)
    loaded = tf.Fabric(tf.compile(gather, max_flits=2), width=8, tables="ram")
    small = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=4)
    spread = tf.plan("3x3", "broadcast", algorithm="spanning-tree")
    roomy = tf.Fabric(tf.compile(spread, max_flits=4), tables="ram")
    xml = folder / "plan.xml"
    tf.export_schedule(gather, xml)
    listed = folder / "traffic.csv"
    listed.write_text("source,destinations\n0,1\n")
    ports = np.array([[0, 0]])
    split = tf.Torus(2, 2, link_latency="0:12")
    wide = tf.Fabric(tf.compile(tf.plan(split, "allgather"), max_flits=2), width=16)
    system = BoardSystem(wide, Boards.parse("2x1", split))

    for name, function, arguments in (
        ("plan", tf.plan, {
            "topology": "2x3", "collective": "allgather", "algorithm": "matching", "ports": 4,
            "chunks": 1, "seed": 0, "latency": 1, "duplex": "full", "trees": None, "packets": None,
            "times": None, "large": False, "broken_links": (), "broken_nodes": (), "relays": (),
            "link_latency": 1}),
        ("plan.relays", tf.plan, {
            "topology": "2x3", "collective": "allgather", "relays": [1, "(1,0)"]}),
        ("plan.groups", tf.plan, {
            "topology": "2x3", "collective": "allgather", "groups": [[0, 1, 5]]}),
        ("plan.counts", tf.plan, {
            "topology": "3", "collective": "allgather", "counts": [1, 2, 3]}),
        ("plan.traffic", tf.plan, {
            "topology": "3", "collective": "pattern", "traffic": [(0, 1, 4)]}),
        ("Traffic", tf.Traffic, {"messages": [(0, 1, 4, "a"), (1, (0, 2))]}),
        ("Traffic.read", tf.Traffic.read, {"path": listed}),
        ("Traffic.from_matrix", tf.Traffic.from_matrix, {"matrix": [[0, 2], [1, 0]]}),
        ("Traffic.from_graph", tf.Traffic.from_graph, {
            "graph": nx.DiGraph([(0, 1)]), "weight": "weight"}),
        ("plan_forms", tf.plan_forms, {
            "topology": "3", "collective": "allreduce", "max_flits": 4, "forms": "auto"}),
        ("compare", tf.compare, {"topology": "3", "collective": "allgather", "flits": 2}),
        ("check", tf.check, {"schedule": gather}),
        ("spread", tf.spread, {"schedule": gather}),
        ("find_collisions", tf.find_collisions, {"schedule": gather}),
        ("bound", tf.bound, {"schedule": gather}),
        ("time", tf.time, {"schedule": gather, "alpha": 1, "beta": 1, "delta": 1, "tau": 1}),
        ("stream_time", tf.stream_time, {"schedule": spread, "beta": 1, "tau": 1}),
        ("compile", tf.compile, {"schedule": reducing, "max_flits": 4, "operators": "add"}),
        ("compile.flits", tf.compile, {"schedule": gather, "flits": 4}),
        ("Fabric", tf.Fabric, {"program": program, "width": 8}),
        ("FabricSpec", tf.FabricSpec, {
            "topology": "2x3", "collective": "allgather", "algorithm": "matching", "root": None,
            "broken_link": (), "large": False, "times": None, "costs": None, "width": 8, "flits": 2,
            "top": "host", "bus": None, "beat": "auto", "prefix": "a", "tables": "rom"}),
        ("FabricSpec.parse", tf.FabricSpec.parse, {"text": "2x3 allgather --width 8"}),
        ("simulate", tf.simulate, {"fabric": fabric, "jobs": [tf.Job(length=1)]}),
        ("emit", tf.emit, {"fabric": fabric}),
        ("Design.write", tf.emit(fabric).write, {"folder": folder / "out", "force": True}),
        ("synthesize", tf.synthesize, {"design": small, "target": "ice40-hx8k"}),
        ("connect", tf.connect, {"port": "sim:2 allreduce"}),
        ("image", tf.image, {"fabric": loaded, "collectives": "allgather"}),
        ("repair", tf.repair, {"fabric": roomy, "broken_links": ["0:+0"]}),
        ("load", tf.load, {"path": path}),
        ("save", tf.save, {"schedule": gather, "path": path}),
        ("export_schedule", tf.export_schedule, {
            "schedule": gather, "path": folder / "out.csv", "format": "csv", "force": True}),
        ("import_schedule", tf.import_schedule, {"path": xml, "topology": "3"}),
        ("parse_topology", tf.parse_topology, {"text": "3"}),
        ("with_rates", tf.with_rates, {"topology": "2x2", "rates": "0:2,1:1/2"}),
        ("parse_collective", tf.parse_collective, {"name": "allgather", "topology": torus}),
        ("register_algorithm", tf.register_algorithm, {"algorithm": 3, "before": None}),
        ("register_operator", tf.register_operator, {"operator": 3}),
        ("register_topology", tf.register_topology, {"family": 3}),
        ("Torus", tf.Torus, {"sides": (2, 3)}),
        ("TwistedTorus", tf.TwistedTorus, {"sides": (4, 2), "twists": (1, 0)}),
        ("Arrowhead", tf.Arrowhead, {"order": 1}),
        ("Circulant", tf.Circulant, {"nodes": 5, "offsets": (1, 2)}),
        ("Complete", tf.Complete, {"nodes": 4}),
        ("Cube", tf.Cube, {"axes": 2}),
        ("Mesh", tf.Mesh, {"sides": (2, 3)}),
        ("Graph", tf.Graph, {"graph": [(0, 1), (1, 0)]}),
        ("Graph.relays", tf.Graph, {
            "graph": [(0, 1), (1, 0), (1, 2), (2, 1)], "relays": [1]}),
        ("Faulty", tf.Faulty, {"whole": torus, "broken_links": ("0:+1",)}),
        ("Faulty.relays", tf.Faulty, {"whole": torus, "relays": [4]}),
        ("Pattern", checked(tf.Pattern), {
            "topology": ring, "collective": tf.Collective("allgather"), "steps": 1,
            "feed": np.tile([1, 0], (3, 1)), "inject": np.zeros((3, 2), int)}),
        ("SumPattern", checked(tf.SumPattern), {
            "topology": ring, "collective": tf.Collective("reduce-scatter"), "ports": 1,
            "feed": np.tile([1, -1], (3, 1)), "inject": np.tile([0, -1], (3, 1)), "turns": 1}),
        ("Table", checked(tf.Table), {
            "topology": ring, "collective": tf.Collective("allgather"),
            "offset": np.array([[1, 2]]), "chunk": ports}),
        ("SumTable", checked(tf.SumTable), {
            "topology": ring, "collective": tf.Collective("allreduce"), "chunk": ports,
            "passed": np.array([[-1, -1]])}),
        ("Rounds", checked(tf.Rounds), {
            "topology": ring, "collective": tf.Collective("allgather"),
            "transfers": (tf.Transfers(np.array([0, 1, 2]), np.array([[0]] * 3)),)}),
        ("Transfers", tf.Transfers, {"source": np.array([0, 0]), "hops": np.array([[0], [1]])}),
        ("Listed", tf.Listed, {"indptr": np.array([0, 1]), "ids": np.array([0])}),
        ("Switching", tf.Switching, {"value": "circuit"}),
        ("Collective", tf.Collective, {"kind": "allgather"}),
        ("Collective.offsets", tf.Collective, {"kind": "exchange", "offsets": ("+0",)}),
        ("Operator", tf.Operator, {
            "name": "own", "function": lambda a, b, width: a, "identity": lambda width: 0,
            "hardware": lambda m, a, b: a}),
        ("Algorithm", tf.Algorithm, {
            "name": "own", "source": "x", "summary": "x", "collectives": ("allgather",),
            "options": (), "misfit": lambda *_: None, "plan": lambda *_: gather}),
        ("Options", tf.Options, {}),
        ("Job", tf.Job, {"mode": 0, "length": 1}),
        ("Schedule.save", gather.save, {"path": path}),
        ("Program.cycles", program.cycles, {"length": 2}),
        ("Program.execute", program.execute, {"words": np.zeros((4, 4), int)}),
        ("Program.delivered", program.delivered, {"words": np.zeros((4, 4), int)}),
        ("Program.operand_orders", program.operand_orders, {"length": 2}),
        ("Fabric.delivered", fabric.delivered, {"words": np.zeros((4, 4), int), "length": 4}),
        ("Fabric.cycles_of", fabric.cycles_of, {"length": 2}),
        ("Fabric.behind", fabric.behind, {"bus": "axi-lite"}),
        ("Topology.port", torus.port, {"name": "+0"}),
        ("Topology.arc", torus.arc, {"link": "0:+0"}),
        ("Topology.arc_name", torus.arc_name, {"node": 0, "port": 0}),
        ("Topology.on_links", torus.on_links, {"latency": 2}),
        ("Topology.node_name", torus.node_name, {"node": 0}),
        ("Topology.cycles_from", torus.cycles_from, {"node": 0}),
        ("Torus.node", torus.node, {"coordinates": (0, 1)}),
        ("Torus.coordinates", torus.coordinates, {"nodes": 3}),
        ("Torus.add", torus.add, {"a": 1, "b": 2}),
        ("Torus.subtract", torus.subtract, {"a": 1, "b": 2}),
        ("Torus.distance", torus.distance, {"a": 1, "b": 2}),
        ("Collective.groups", tf.Collective("allgather").groups, {"topology": ring}),
        ("Collective.blocks", tf.Collective("allgather").blocks, {"topology": ring, "chunks": 1}),
        ("Transfers.walk", tf.Transfers(np.array([0]), np.array([[0]])).walk, {"topology": ring}),
        ("Listed.single", tf.Listed.single, {"ids": np.array([0])}),
        ("prove", prove, {"fabric": small}),
        ("draw", draw_schedule, {"schedule": gather}),
        ("schedule_facts", schedule_facts, {"schedule": gather}),
        ("Boards.parse", Boards.parse, {"text": "2x1", "topology": split}),
        ("BoardSystem", BoardSystem, {"fabric": wide, "boards": Boards.parse("2x1", split)}),
        ("simulate_boards", simulate_boards, {"system": system, "jobs": 1}),
        ("word_path", word_path, {"program": program, "origin": 0, "destination": 1, "flit": 0}),
        ("find", find_algorithm, {"name": "matching"}),
    ):  # fmt: skip
        yield name, Call(function, arguments)


#: Calls that take seconds if the value happens to be right. They are made rarely.
SLOW = ("connect", "prove", "repair", "simulate", "simulate_boards", "synthesize")

#: Values that are functions of the user. An error that such a function raises is no fault.
FUNCTIONS = ("a class", "a function", "a function of nothing")


class CallFuzzer(Fuzzer):
    """Check that a call with a wrong value succeeds, or is refused by an error of torusfabric."""

    name = "call"
    weight = 40

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.calls = all_calls(folder)

    def make(self, draw: random.Random) -> tuple[str, str, str]:
        quick = [name for name in self.calls if name not in SLOW]
        name = draw.choice(quick if draw.random() < 0.99 else [*self.calls])
        parameter = draw.choice(self.calls[name].parameters)
        return name, parameter, draw.choice(wrong_values(parameter))

    def run(self, given: tuple[str, str, str]) -> None:
        name, parameter, wrong = given
        self.calls[name]({parameter: WRONG[wrong]()})
