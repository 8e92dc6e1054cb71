"""Random changes of schedule files: JSON, plain or compressed."""

import gzip
import json
import random
from pathlib import Path
from typing import NamedTuple

import torusfabric as tf

from .mutation import changed_bytes, changed_value
from .oracle import Fuzzer, run_line

__all__ = ["ScheduleFuzzer"]

#: Small schedules that the files are made from, of every form.
SELECTIONS = (
    ("3", "allgather", {}),
    ("2x2", "allgather", {}),
    ("2x3", "alltoall", {}),
    ("3x3", "broadcast", {"root": 4}),
    ("3", "allreduce", {}),
    ("2x2", "reduce", {}),
    ("2x3", "gather@1", {}),
    ("4", "reduce-scatter", {}),
    ("arrowhead:1", "broadcast", {}),
    ("2x2", "barrier", {}),
    ("2x2x2", "scatter", {"ports": 1}),
)


class File(NamedTuple):
    """A file, and True if a command reads it."""

    name: str
    content: bytes
    command: bool


class ScheduleFuzzer(Fuzzer):
    """Check that an accepted file can be checked, and is the same after it is written again."""

    name = "schedule"
    weight = 80

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        path, self.contents = folder / "seed.json", []
        for topology, collective, options in SELECTIONS:
            try:
                tf.plan(topology, collective, **options).save(path)
            except tf.InputError:
                continue
            self.contents.append(json.loads(path.read_text("utf-8")))
            path.unlink()

    def make(self, draw: random.Random) -> File:
        value = draw.choice(self.contents)
        if draw.random() < 0.7:
            value = changed_value(value, draw)
        try:
            content = json.dumps(value).encode()
        except ValueError:  # a number of too many digits
            content = b"[" + b"9" * 5000 + b"]"
        if draw.random() < 0.4:
            content = changed_bytes(content, draw)
        if draw.random() < 0.1:
            content = gzip.compress(content, 1, mtime=0)
            if draw.random() < 0.7:
                content = changed_bytes(content, draw)
            return File("file.json.gz", content, draw.random() < 0.2)
        return File("file.json", content, draw.random() < 0.05)

    def run(self, given: File) -> None:
        path = self.folder / given.name
        path.write_bytes(given.content)
        try:
            if given.command:
                run_line(["check", str(path), "--quiet"], self.folder)
            else:
                self.load(path)
        finally:
            path.unlink()

    def load(self, path: Path) -> None:
        """Read a file, check its schedule, write it again, and compare."""
        schedule = tf.load(path)
        try:
            tf.check(schedule)
        finally:
            again = self.folder / "again.json"
            schedule.save(again)
            try:
                assert tf.load(again).digest == schedule.digest, "not the same when read again"
            finally:
                again.unlink()
