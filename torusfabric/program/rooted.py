"""Programs of broadcasts whose root is chosen anew for every run.

Topologies are Cayley graphs, so a broadcast planned for node 0 serves any root: a node does what
the plan says for its offset from the root. What it does with its crossbar is one of a few *kinds*,
because most nodes leave most out-ports idle, and what does not matter can be made alike. A message
comes to a node once; from where and when follows from the offset too.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..schedule import Everything, Grouped
from .base import IDLE, SwitchProgram
from .rounds import RoundProgram, compile_rounds

__all__ = ["RootedProgram", "compile_rooted"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RootedProgram(SwitchProgram):
    """The program of a broadcast in rounds from any root.

    Setting ``kind * settings_per_kind + round`` is that of a kind in a round. Lane ``c`` carries
    chunk ``c``. There is one router class.

    Parameters
    ----------
    base : RoundProgram
        The program for root 0.
    kind : ndarray of int, shape (nodes,)
        What the router of a node at an offset from the root does.
    settings_per_kind : int
        A power of two.
    arrivals : tuple of (int, int)
        The different pairs of a round, and the hops of a path on which something arrives in it.
    when : ndarray of int, shape (nodes, chunks)
        The arrival of each chunk at an offset from the root; ``len(arrivals)`` at the root.
    port : ndarray of int, shape (nodes, chunks)
        The in-port by which it comes; -1 at the root.
    """

    base: RoundProgram
    kind: np.ndarray
    settings_per_kind: int
    arrivals: tuple
    when: np.ndarray
    port: np.ndarray

    @property
    def rounds(self):
        """Number of rounds."""
        return self.base.rounds

    def cycles(self, flits):
        return self.base.cycles(flits)

    def cycle_cost(self, flits):
        return self.base.cycle_cost(flits)

    def locate(self, nodes, blocks):
        """As for root 0: bank and slot are those of the chunk."""
        nodes, blocks = np.broadcast_arrays(nodes, blocks)
        return self.blocks.chunk(blocks), np.zeros_like(nodes)

    def execute(self, messages, root=0):
        """Carry out the program on data, as the hardware does.

        Parameters
        ----------
        messages : ndarray, shape (nodes, send words)
        root : int, optional
        """
        place = self.topology.add(np.arange(self.topology.nodes), root)
        words = np.empty_like(messages)
        words[place] = self.base.execute(messages[place])
        return words


def compile_rooted(schedule):
    """The program of a broadcast in rounds from any root.

    Parameters
    ----------
    schedule : Schedule
        Of a broadcast from node 0.

    Returns
    -------
    RootedProgram

    Raises
    ------
    InputError
        If it is no broadcast, or a message combines chunks.
    """
    if schedule.collective.kind != "broadcast":
        kind = schedule.collective.kind
        raise InputError(f"Root must be a node number for {kind}, not any")
    topology, base = schedule.topology, compile_rounds(schedule)
    rows, came = _follow(schedule)
    kind, settings = _merge(rows)
    span = 1 << max(base.rounds - 1, 0).bit_length()
    padding = [(0, 0), (0, span - base.rounds), (0, 0)]
    select = np.pad(settings, padding, constant_values=IDLE).reshape(-1, 1, topology.ports)
    arrivals = tuple(sorted({(a, hops) for a, hops, _ in came.values()}))
    when = np.full((topology.nodes, schedule.chunks), len(arrivals))
    port = np.full((topology.nodes, schedule.chunks), -1)
    for cell, (number, hops, by) in came.items():
        when[cell], port[cell] = arrivals.index((number, hops)), by
    return RootedProgram(
        schedule=schedule,
        select=select,
        node_class=np.zeros(topology.nodes, np.int32),
        base=base,
        kind=kind,
        settings_per_kind=span,
        arrivals=arrivals,
        when=when,
        port=port,
    )


def _follow(schedule):
    """What crossbars do, and how chunks come.

    Returns
    -------
    rows : ndarray of int, shape (nodes, rounds, ports)
    came : dict of (int, int) to (int, int, int)
        Node and chunk to round, hops and in-port.
    """
    topology, root = schedule.topology, schedule.collective.root
    held = np.zeros((topology.nodes, schedule.chunks), bool)
    held[root] = True
    rows, came = [], {}
    for number, transfers in enumerate(schedule.rounds()):
        chunks = _chunks(transfers, held)
        walk, hops = transfers.walk(topology), transfers.hops
        select = np.full((topology.nodes, topology.ports), IDLE, np.int16)
        entry = topology.ports + chunks
        for hop in range(hops.shape[1]):
            on = hops[:, hop] >= 0
            select[walk[on, hop], hops[on, hop]] = entry[on]
            entry = np.where(on, topology.opposite[hops[:, hop]], entry)
        rows.append(select)
        ends = np.stack([walk[:, -1], chunks, transfers.lengths, entry], axis=1)
        for node, chunk, length, port in ends.tolist():
            if not held[node, chunk]:
                held[node, chunk] = True
                came[node, chunk] = number, length, port
    return np.stack(rows, axis=1), came


def _chunks(transfers, held):
    """The chunk that each transfer carries."""
    match transfers.payload:
        case Everything() | Grouped():
            carried = held[transfers.source]
            if isinstance(transfers.payload, Grouped):
                group, wanted = transfers.payload.group, transfers.payload.wanted
                carried = carried & (group[None, :] == wanted[:, None])
        case listed:
            carried = np.zeros((len(transfers), held.shape[1]), bool)
            number = np.repeat(np.arange(len(transfers)), np.diff(listed.indptr))
            carried[number, listed.ids] = True
    most = int(carried.sum(axis=1).max(initial=0))
    if most > 1:
        raise InputError(
            f"Root must be a node number where a message combines {most} chunks, not any"
        )
    return carried.argmax(axis=1)


def _merge(rows):
    """Make programs alike that differ only in what does not matter.

    Parameters
    ----------
    rows : ndarray of int, shape (nodes, rounds, ports)

    Returns
    -------
    kind : ndarray of int, shape (nodes,)
    settings : ndarray of int, shape (kinds, rounds, ports)
    """
    kinds: list[np.ndarray] = []
    kind = np.empty(len(rows), int)
    for node in np.argsort((rows < 0).sum(axis=(1, 2)), kind="stable").tolist():
        row = rows[node]
        for number, settings in enumerate(kinds):
            if not ((settings >= 0) & (row >= 0) & (settings != row)).any():
                settings[row >= 0] = row[row >= 0]
                kind[node] = number
                break
        else:
            kind[node] = len(kinds)
            kinds.append(row.copy())
    return kind, np.stack(kinds)
