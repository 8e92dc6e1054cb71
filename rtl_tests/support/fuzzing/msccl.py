"""Random changes of MSCCL XML files."""

import copy
import random
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import torusfabric as tf

from .mutation import NASTY_NUMBERS, NASTY_TEXTS, changed_bytes
from .oracle import Fuzzer, run_line

__all__ = ["MscclFuzzer"]

#: Schedules that the files are made from, and topologies onto which they are imported.
SELECTIONS = (("4", "allgather"), ("3", "alltoall"), ("2x2", "allreduce"), ("2x3", "allgather"),
              ("3", "reduce-scatter"))  # fmt: skip
TOPOLOGIES = ("4", "3", "2x2", "4", "3", "2x2", "2x3", "arrowhead:1")

#: New values of attributes.
VALUES = (
    *(str(n) for n in NASTY_NUMBERS if n < 10**100),
    *(text for text in NASTY_TEXTS if text.isprintable()),
    "nop",
    "s",
    "r",
    "rcs",
    "rrc",
    "rrs",
    "rrcs",
    "cpy",
    "re",
    "i",
    "o",
    "alltoall",
    "reduce_scatter",
    "allreduce",
    "custom",
)


class File(NamedTuple):
    """A file with the arguments of its import, and True if a command reads it."""

    content: bytes
    topology: str
    switching: str
    command: bool


class MscclFuzzer(Fuzzer):
    """Check that an accepted file gives a schedule that passes the check."""

    name = "msccl"
    weight = 70

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path, self.texts = folder / "seed.xml", []
        for topology, collective in SELECTIONS:
            tf.export_schedule(tf.plan(topology, collective), path)
            self.texts.append(path.read_text("utf-8"))
        path.unlink()

    def make(self, draw: random.Random) -> File:
        root = ElementTree.fromstring(draw.choice(self.texts))
        for _ in range(draw.choice([0, 1, 1, 2, 3])):
            _change(root, draw)
        content = ElementTree.tostring(root)
        if draw.random() < 0.3:
            content = changed_bytes(content, draw)
        switching = draw.choice(["store-and-forward", "circuit"])
        return File(content, draw.choice(TOPOLOGIES), switching, draw.random() < 0.05)

    def run(self, given: File) -> None:
        path = self.folder / "file.xml"
        path.write_bytes(given.content)
        options = {"--topology": given.topology, "--switching": given.switching}
        try:
            if given.command:
                words = [word for option in options.items() for word in option]
                run_line(["import", str(path), *words], self.folder)
            else:
                schedule = tf.import_schedule(path, given.topology, switching=given.switching)
                tf.check(schedule)
        finally:
            path.unlink()


def _change(root: ElementTree.Element, draw: random.Random) -> None:
    """Change a random attribute or element."""
    elements = [*root.iter()]
    element = draw.choice(elements)
    parent = draw.choice([found for found in elements if len(found)] or [root])
    name = draw.choice([*element.attrib] or ["name"])
    match draw.randrange(8):
        case 0:
            element.attrib.pop(name, None)
        case 1 if len(parent):
            parent.remove(draw.choice([*parent]))
        case 2 if len(parent):
            copied = copy.deepcopy(draw.choice([*parent]))
            parent.insert(draw.randrange(len(parent) + 1), copied)
        case 3:
            element.tag = draw.choice(["algo", "gpu", "tb", "step", "copy", "x"])
        case _:
            element.set(name, draw.choice(VALUES))
