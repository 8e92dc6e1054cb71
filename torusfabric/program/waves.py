"""Programs of oblivious schedules: the waves of a `Pattern`.

Every router knows two settings: inject (step 1 of a wave) and forward (all later steps). A message
of L flits in C chunks travels as L / C waves, one after another without a gap. Whatever arrives in
a step is stored at the place ``wave * steps + step - 1`` of its in-port's bank, in every node
alike; which block that is follows from the position of the in-arc on its flow.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..schedule import Pattern
from ..schedule.flows import Flows
from .base import IDLE, OWN, SwitchProgram, classify
from .routes import routes_of

__all__ = ["WaveProgram", "compile_waves"]

#: Clock edges from the start pulse to done beyond one a step: settings register, and memory write.
OVERHEAD = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class WaveProgram(SwitchProgram):
    """The program of a `Pattern`.

    ``select[0]`` holds the settings of the first step of a wave, ``select[1]`` those of the others.

    Parameters
    ----------
    lane_chunk : ndarray of int, shape (nodes, lanes)
        The chunk that enters each router by each local lane, -1 past its last lane.
    """

    schedule: Pattern
    lane_chunk: np.ndarray

    @property
    def steps(self):
        """Steps of a wave."""
        return self.schedule.steps

    def cycles(self, flits):
        return self.block_flits(flits) * self.steps + OVERHEAD

    @cached_property
    def routes(self):
        """The ways by which blocks reach nodes, a list of `Route`."""
        return routes_of(self.schedule, Flows.of(self.schedule))

    def locate(self, nodes, blocks):
        nodes, blocks = np.broadcast_arrays(nodes, blocks)
        origin, chunk = self.blocks.origin(blocks), self.blocks.chunk(blocks)
        bank = np.full(nodes.shape, OWN)
        slot = np.where(origin == nodes, chunk, -1)
        for route in self.routes:
            step = route.step(nodes, origin, chunk)
            hit = (slot < 0) & (step >= 1) & (step <= self.steps)
            bank, slot = np.where(hit, route.port[nodes], bank), np.where(hit, step - 1, slot)
        return bank, slot

    def arrivals(self):
        """What is new at each in-port in each step.

        Returns
        -------
        ndarray of int, shape (nodes, ports, steps)
            A block number; -1 where nothing arrives, or what the node has already, be it that it
            comes in by another port in the same step.
        """
        topology, nodes = self.topology, np.arange(self.topology.nodes)
        arrivals = np.full((len(nodes), topology.ports, self.steps), -1)
        had = np.zeros((len(nodes), self.blocks.count), bool)
        had[self.blocks.origin(np.arange(self.blocks.count)), np.arange(self.blocks.count)] = True
        for step, transfers in enumerate(self.schedule.rounds()):
            port = transfers.hops[:, 0]
            arrived = np.full((len(nodes), topology.ports), -1)
            there = topology.neighbours[transfers.source, port], topology.opposite[port]
            arrived[there] = transfers.listed.ids
            for block, new in zip(arrived.T, arrivals[:, :, step].T, strict=True):
                fresh = (block >= 0) & ~had[nodes, block]
                new[fresh] = block[fresh]
                had[nodes[fresh], block[fresh]] = True
        return arrivals

    def execute(self, messages):
        schedule, topology = self.schedule, self.topology
        chunks, nodes = schedule.chunks, np.arange(topology.nodes)
        waves = messages.reshape(topology.nodes, chunks, -1)
        received = np.zeros(
            (topology.nodes, topology.ports, self.steps, waves.shape[2]), waves.dtype
        )
        inject = schedule.inject
        link = np.where((inject >= 0)[..., None], waves[nodes[:, None], inject], 0)
        upstream = (
            topology.neighbours[nodes[:, None], schedule.feed],
            topology.opposite[schedule.feed],
        )
        arriving = topology.neighbours, np.broadcast_to(topology.opposite, schedule.feed.shape)
        for step in range(self.steps):
            received[:, :, step] = link[arriving]
            link = np.where((schedule.feed >= 0)[..., None], link[upstream], 0)
        index = np.arange(self.layout.recv_blocks)
        bank, slot = self.locate(
            nodes[:, None], self.layout.received_block(nodes[:, None], index[None, :])
        )
        own = waves[nodes[:, None], np.maximum(slot, 0) % chunks]
        view = np.where((bank == OWN)[..., None], own, received[nodes[:, None], bank, slot])
        view[slot < 0] = 0
        return view.reshape(topology.nodes, -1)


def compile_waves(pattern):
    """The switch program of an oblivious schedule.

    Parameters
    ----------
    pattern : Pattern

    Returns
    -------
    WaveProgram
    """
    nodes, ports = pattern.feed.shape
    lane = np.full((nodes, ports), -1)
    lane_chunk = np.full((nodes, min(ports, pattern.chunks)), -1)
    for port in range(ports):
        chunk = pattern.inject[:, port]
        for node_lane in range(lane_chunk.shape[1]):
            free = (lane_chunk[:, node_lane] < 0) & (lane[:, port] < 0) & (chunk >= 0)
            lane_chunk[free, node_lane] = chunk[free]
            lane[(lane_chunk[:, node_lane] == chunk) & (chunk >= 0), port] = node_lane
    forward = np.where(pattern.feed >= 0, pattern.feed, IDLE)
    inject = np.where(lane >= 0, ports + lane, IDLE)
    node_class, first = classify(np.hstack([inject, forward]))
    select = np.stack([inject[first], forward[first]]).astype(np.int16)
    return WaveProgram(
        schedule=pattern, select=select, node_class=node_class, lane_chunk=lane_chunk
    )
