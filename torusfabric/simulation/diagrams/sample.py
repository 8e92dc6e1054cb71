"""A few words that one node sends, and what another receives of them."""

from dataclasses import dataclass

import numpy as np

from ...collective import expected_words
from ...rtl.fabric import Fabric, Top
from ..engines.base import Job, longest_job

__all__ = ["Sample", "sample"]

#: Words that are shown.
WORDS = 3

#: The most flits of a message where the length is chosen.
FLITS = 4

#: The first of the words sent.
FIRST = 0xA0


@dataclass(frozen=True)
class Sample:
    """What is sent and received in the run that diagrams show; all other words are 0.

    Parameters
    ----------
    job : Job
        What is chosen for the run.
    source, reader : int
        The node whose words are written, and that whose words are read.
    sent, received : tuple of (int, int)
        Parts of these words, and their numbers in these: of flits, or of beats as the ports of
        memories take them.
    words : tuple of int
        What is sent.
    """

    job: Job
    source: int
    reader: int
    sent: tuple[tuple[int, int], ...]
    received: tuple[tuple[int, int], ...]
    words: tuple[int, ...]


def sample(fabric: Fabric) -> Sample:
    """What a run shows of a fabric, in its first mode.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "alltoall"), flits=2), width=8)
    >>> found = sample(fabric)
    >>> found.source, found.reader, found.sent, found.received
    (0, 2, ((2, 0), (2, 1)), ((0, 0), (0, 1)))
    """
    job = _short_job(fabric)
    alone = fabric.program.part(fabric.program.form_of(job.mode, job.length))
    length, layout = job.length or fabric.flits, alone.layout
    collective = layout.blocks.collective
    group = layout.blocks.groups.members[0].tolist()
    root = group[job.root or collective.root or 0]
    source = group[0] if collective.from_each else root
    reader = root if collective.to_root else group[-1]
    if source == reader:
        source = group[-1] if collective.from_each else source
    part = group.index(reader) if collective.personal else 0
    count = min(WORDS, length)
    words = tuple((FIRST + k) % (1 << fabric.width) for k in range(count))
    messages = np.zeros((fabric.nodes, layout.send_words(length)), object)
    messages[source, part * length : part * length + count] = words
    operator = alone.form.operator_of(job.operation)
    expected, _ = expected_words(
        layout, messages, operator=operator, width=fabric.width, root=job.root
    )
    found = np.flatnonzero(expected[reader])[:count].tolist() or list(range(count))
    beat = 1 if fabric.top is Top.STREAM else fabric.beat
    sent = dict.fromkeys((part, flit // beat) for flit in range(count))
    received = dict.fromkeys((index // length, index % length // beat) for index in found)
    beats = tuple(_joined(words[k : k + beat], fabric.width) for k in range(0, count, beat))
    return Sample(job, source, reader, tuple(sent), tuple(received), beats)


def _joined(words: tuple[int, ...], width: int) -> int:
    """Flits side by side, the first in the lowest bits."""
    return sum(word << k * width for k, word in enumerate(words))


def _short_job(fabric: Fabric) -> Job:
    """The first mode, with short messages where there is a choice."""
    job = longest_job(fabric)
    return job if job.length is None else job._replace(length=min(FLITS, job.length))
