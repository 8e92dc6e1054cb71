"""Simulated fabrics with loaded tables: images, their load port, and runs of a ring."""

from copy import copy
from dataclasses import replace
from functools import cache, partial

import numpy as np

import torusfabric as tf
from torusfabric.adapters.loading.choose import resolve_loadable
from torusfabric.adapters.loading.fitting import loadable_form
from torusfabric.adapters.loading.room import room_for
from torusfabric.planning import make_selection


def quickest(topology, name, room=None, *, flits, **options):
    """Return the schedule with the fewest cycles that can be loaded."""
    operators = room.parsed_operators() if room else ()
    return resolve_loadable(make_selection(topology, name, **options), flits, operators, room)[
        -1
    ].planned


FLITS, WIDTH = 6, 8

planned = partial(quickest, "5", flits=FLITS)


@cache
def ring_room():
    """Return the room of a fabric on a ring that is built with two collectives."""
    forms = [loadable_form(planned(name), FLITS, ()) for name in ("allgather", "allreduce")]
    return room_for([form.program for form in forms], rows=64, depth=16)


def fabric_of(image, words=None):
    """Return a fabric into which words are loaded, by default the words of its image."""
    fabric = tf.Fabric.holding(image, empty=True)
    give(fabric, image, image.words if words is None else words)
    return fabric


def give(fabric, image, words):
    """Let a fabric load other words than those of its image."""
    fabric.front.tables = replace(fabric.tables, image=with_words(image, words))


def with_words(image, words):
    """Return an image with other words."""
    other = copy(image)
    other.__dict__["words"] = words
    return other


def as_forecast(report):
    """Return True if all words are right and all runs take the predicted cycles."""
    return report.passed and all(job.cycles == job.predicted_cycles for job in report.jobs)


def with_rows(fabric, changed):
    """Change the rows of tables; `changed` has a function from old to new rows for each module."""
    modules = dict(fabric.netlist.modules)
    for name, change in changed.items():
        make = modules[name]
        tables, bus, rows, *parts = make.args
        modules[name] = partial(make.func, tables, bus, change(tables, rows), *parts,
                                **make.keywords)  # fmt: skip
    fabric.netlist = replace(fabric.netlist, modules=modules)


def wanted(*schedules):
    """Return one schedule for each mode, with the root that it has."""
    return [([one], False) for one in schedules]


#: LONG: flits of a run that takes longer than loading an image. BASE: number of the image word with
#: which the modes of the former image end.
LONG, BASE = 64, 4


class HostPort:
    """Driver of the host port of a simulated fabric, and of its load port."""

    def __init__(self, ctx, fabric):
        self.ctx, self.fabric = ctx, fabric

    async def set(self, **values):
        """Set ports for one clock edge."""
        for name, value in values.items():
            self.ctx.set(getattr(self.fabric, name), value)
        await self.ctx.tick()

    async def load(self, words, *, start=None, follow=()):
        """Load words, one a clock edge; return the modes that are present then, and the program.

        The words of another image may follow, and a run may start with one of the words.
        """
        for k, word in enumerate([*words, *follow]):
            first = k in (0, len(words))
            await self.set(load_we=1, load_first=first, load_data=word, start=k == start)
        for _ in range(self.fabric.image.settle_cycles):
            await self.set(load_we=0)
        return self.ctx.get(self.fabric.modes), self.ctx.get(self.fabric.loaded_program)

    async def start(self, mode, **chosen):
        """Start a run; return `busy`, or the error if no run began."""
        await self.set(mode=mode, **{"length": LONG} | chosen, start=1)
        await self.set(start=0)
        return self.ctx.get(self.fabric.busy) or self.ctx.get(self.fabric.error)

    async def end(self):
        """Wait for the end; return the cycles, and the received words."""
        while not self.ctx.get(self.fabric.done):
            await self.ctx.tick()
        got = []
        for node, part in np.ndindex(3, 3):
            address = self.fabric.layout.recv_base + (part + 1) * LONG - 1
            await self.set(host_node=node, host_addr=address)
            for _ in range(self.fabric.read_latency):
                await self.ctx.tick()
            got.append(self.ctx.get(self.fabric.host_rdata))
        return self.ctx.get(self.fabric.cycles), got
