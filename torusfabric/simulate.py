"""Simulation of a whole fabric with random data, every word compared."""

import time
from dataclasses import asdict, dataclass

import numpy as np

from .bounds import bound
from .engines import AmaranthEngine
from .rtl.origins import Origins

__all__ = ["Fault", "Report", "expected_words", "random_messages", "simulate"]


@dataclass(frozen=True)
class Fault:
    """A word that is not what it should be."""

    node: int
    origin: int
    flit: int
    expected: int
    got: int

    def __str__(self):
        return (
            f"node {self.node} holds {self.got:#x} for flit {self.flit} of node {self.origin}, "
            f"not {self.expected:#x}"
        )


@dataclass(frozen=True)
class Report:
    """What a simulation found.

    Parameters
    ----------
    topology, collective, algorithm, engine : str
    switching : str
        Tells whether the rounds are steps of one hop.
    origins : Origins
        How origins are known, and what that costs.
    rounds, bound : int
        Rounds of the schedule, and the fewest that any schedule could have.
    cycles, predicted_cycles : int
        Clock edges from the start pulse to done: measured and planned.
    words_checked, words_wrong : int
    first_wrong : Fault or None
    seconds : float
    clocks : int
        Clock cycles simulated, loading and reading included.
    node_cycles_per_second : float
    """

    topology: str
    collective: str
    algorithm: str
    engine: str
    switching: str
    nodes: int
    width: int
    flits: int
    router_classes: int
    origins: Origins
    rounds: int
    bound: int
    cycles: int
    predicted_cycles: int
    words_checked: int
    words_wrong: int
    first_wrong: Fault | None
    seconds: float
    clocks: int
    node_cycles_per_second: float

    @property
    def passed(self):
        """Whether all words are right and the cycles are those predicted."""
        return not self.words_wrong and self.cycles == self.predicted_cycles

    def to_json(self):
        """The report as plain data."""
        return asdict(self) | {"origins": self.origins.to_json(), "passed": self.passed}


def random_messages(fabric, seed):
    """Random words for every node's send memory.

    Returns
    -------
    ndarray, shape (nodes, send words)
        Of uint64, or of Python integers if words are wider.
    """
    generator = np.random.default_rng(seed)
    if fabric.width <= 64:
        shape = fabric.nodes, fabric.layout.send_words
        return generator.integers(0, (1 << fabric.width) - 1, shape, np.uint64, endpoint=True)
    size = -(-fabric.width // 8)
    raw = generator.bytes(fabric.nodes * fabric.layout.send_words * size)
    mask = (1 << fabric.width) - 1
    words = [int.from_bytes(raw[k : k + size], "little") & mask for k in range(0, len(raw), size)]
    return np.array(words, object).reshape(fabric.nodes, fabric.layout.send_words)


def expected_words(program, messages):
    """What the collective owes every node, however it is carried out.

    Parameters
    ----------
    program : SwitchProgram
        Only its collective and the order of the host's addresses are used.
    messages : ndarray, shape (nodes, send words)

    Returns
    -------
    words : ndarray, shape (nodes, receive words)
    owed : ndarray of bool, shape (nodes,)
        The nodes to which anything is owed.
    """
    nodes, blocks = np.arange(program.topology.nodes), program.blocks
    wanted = program.view(nodes[:, None], np.arange(program.view_blocks)[None, :])
    place = blocks.chunk(wanted)
    if blocks.collective.personal:
        place = place + blocks.destination(wanted) * blocks.chunks
    sent = messages.reshape(len(nodes), program.sent_blocks, -1)
    words = sent[blocks.origin(wanted), place].reshape(len(nodes), -1)
    only_root = blocks.collective.kind == "gather"
    return words, (nodes == blocks.collective.root) | (not only_root)


def simulate(fabric, *, seed=1, engine=None, progress=None):
    """Run a fabric once through its host port, and compare every word at every node.

    Parameters
    ----------
    fabric : Fabric
    seed : int
        Of the random payloads.
    engine : Engine, optional
        By default Amaranth's simulator.
    progress : function of (done, total), optional

    Returns
    -------
    Report

    Raises
    ------
    WorkFailed
        If the fabric does not come to an end.
    """
    engine = engine or AmaranthEngine(fabric)
    messages = random_messages(fabric, seed)
    began = time.perf_counter()
    run = engine.run(messages, progress=progress)
    seconds = time.perf_counter() - began
    program, schedule = fabric.program, fabric.program.schedule
    words, owed = expected_words(program, messages)
    got = np.asarray(run.words, words.dtype)
    wrong = np.argwhere((got != words) & owed[:, None])
    return Report(
        topology=str(schedule.topology),
        collective=schedule.collective.kind,
        algorithm=schedule.algorithm,
        engine=engine.name,
        switching=schedule.switching,
        nodes=fabric.nodes,
        width=fabric.width,
        flits=fabric.flits,
        router_classes=len(program.class_sizes),
        origins=fabric.origins,
        rounds=schedule.round_count,
        bound=bound(schedule),
        cycles=run.cycles if run.cycles == run.edges else -1,
        predicted_cycles=fabric.cycles,
        words_checked=int(owed.sum()) * words.shape[1],
        words_wrong=len(wrong),
        first_wrong=_fault(fabric, words, got, *wrong[0]) if len(wrong) else None,
        seconds=round(seconds, 3),
        clocks=run.clocks,
        node_cycles_per_second=round(run.clocks * fabric.nodes / seconds),
    )


def _fault(fabric, words, got, node, place):
    """Describe a wrong word."""
    block, flit = divmod(int(place), fabric.layout.block_flits)
    blocks = fabric.program.blocks
    number = fabric.program.view(np.array([node]), np.array([block]))
    flit += int(blocks.chunk(number)[0]) * fabric.layout.block_flits
    origin = int(blocks.origin(number)[0])
    return Fault(int(node), origin, flit, int(words[node, place]), int(got[node, place]))
