"""What is shown of a fabric whose nodes have streams."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from ...rtl.fabric import Fabric
from ...rtl.streams import needs_commands
from ..engines.traffic import Beat
from ..streams.messages import exchange_of
from ..streams.traffic import beats_of, command_of
from .stage import FIRST, Scene, Sketch, Stage, Watched, sample

__all__ = ["stream_scene"]

#: The beat before which the source that is shown pauses, and for how many cycles; and that after
#: which the sink does.
PAUSE_AT, PAUSE = 1, 2

#: Cycles, beside those of words and runs, after which a run is given up.
LIMIT = 256

#: The tag of the command that is shown.
TAG = 2

#: The signals of a stream, in the order in which they are shown.
SIGNALS = ("tvalid", "tready", "tdata", "tkeep", "tlast", "tdest", "tid")


@dataclass
class _End:
    """What is sent into a stream, or what is received from one where there are no beats.

    Parameters
    ----------
    pauses : int
        Cycles to pause before the beat that `PAUSE_AT` says.
    """

    prefix: str
    beats: deque[Beat] | None = None
    pauses: int = 0
    taken: int = 0

    def offer(self, stage: Stage) -> None:
        """Offer the next beat, or nothing; or be ready, or not."""
        resting = self.taken == PAUSE_AT and self.pauses > 0
        self.pauses -= resting
        if self.beats is None:
            stage.set(**{f"{self.prefix}_tready": int(not resting)})
            return
        valid = bool(self.beats) and not resting
        beat = self.beats[0] if valid else Beat(0, last=False)
        values = {"tvalid": valid, "tdata": beat.word, "tkeep": beat.keep, "tlast": beat.last,
                  "tdest": beat.dest}  # fmt: skip
        stage.set(**{f"{self.prefix}_{name}": int(value) for name, value in values.items()})

    def look(self, stage: Stage) -> None:
        """See whether a beat is taken."""
        if stage.get(f"{self.prefix}_tvalid") and stage.get(f"{self.prefix}_tready"):
            self.taken += 1
            if self.beats:
                self.beats.popleft()


def stream_scene(fabric: Fabric) -> Scene:
    """A run: a packet that is sent with a pause, and what another node receives, with a pause."""
    shown = sample(fabric)
    send, receive = f"s_axis_{shown.source}", f"m_axis_{shown.reader}"
    commanded = needs_commands(fabric.program)

    async def play(stage: Stage) -> None:
        ends, count = _ends(fabric, send, receive)
        source, sink = ends[send], ends[receive]
        for name in ("send", "run"):
            stage.begin(name)
        begun, sending, limit = False, True, 4 * (count + fabric.predicted_cycles) + LIMIT
        while not (sink.taken == count and stage.get("done")) and stage.now < limit:
            for end in ends.values():
                end.offer(stage)
            if stage.get(f"{receive}_tvalid") and "receive" not in stage.cycles:
                stage.begin("receive")
            if stage.get("busy") and not begun:
                begun, stage.origin = True, stage.now
            for end in ends.values():
                end.look(stage)
            await stage.edges()
            # The diagram ends with the cycle after the last word.
            if sending:
                stage.end("send")
            sending = bool(source.beats) or stage.get(f"{send}_tvalid") == 1
        stage.end("receive")
        await stage.edges(2 + 8 * commanded)
        stage.end("run")

    return Scene(play, _sketches(fabric, send, receive))


def _ends(fabric: Fabric, send: str, receive: str) -> tuple[dict[str, _End], int]:
    """All ends of streams for a run, and the beats that are received at the one that is shown."""
    job, nodes = sample(fabric).job, range(fabric.nodes)
    form, length = fabric.program.form_of(job.mode, job.length), job.length or fabric.flits
    layout = fabric.program.part(form).layout
    numbers = np.arange(layout.send_words(length)) + FIRST
    words = (numbers + 16 * np.arange(fabric.nodes)[:, None]).astype(object)
    exchange = exchange_of(fabric, job, words % (1 << fabric.width))
    ends = [_End(f"m_axis_{node}") for node in nodes]
    ends += [
        _End(f"s_axis_{node}", deque(beats_of(exchange.sent[node], fabric.width, fabric.beat)))
        for node in nodes
    ]
    if needs_commands(fabric.program):
        ends += [_End("m_axis_status"), _End("s_axis_cmd", deque(command_of(TAG, job)))]
    found = {end.prefix: end for end in ends}
    found[send].pauses = found[receive].pauses = PAUSE
    reader = int(receive.rpartition("_")[2])
    count = len([*beats_of(exchange.received[reader], fabric.width, fabric.beat)])
    return found, count


def _sketches(fabric: Fabric, send: str, receive: str) -> list[Sketch]:
    """The diagrams."""
    ports = fabric.netlist.inputs | fabric.netlist.outputs

    def watched(prefix: str) -> tuple[Watched, ...]:
        names = (f"{prefix}_{signal}" for signal in SIGNALS)
        return tuple(Watched(name) for name in names if name in ports)

    run = (*watched("s_axis_cmd"), *map(Watched, ("busy", "done")), Watched("cycles", counts=True),
           Watched("error"), *watched("m_axis_status"))  # fmt: skip
    return [
        Sketch("send", "Sending a packet", "A word passes where `tvalid` and `tready` are high; "
               "`tvalid` may go down between words. Cycle 0 is the first of the run.",
               watched(send)),
        Sketch("run", "A run", "It begins when all messages are there.", run),
        Sketch("receive", "Receiving packets", "A word stays until `tready` is high.",
               watched(receive)),
    ]  # fmt: skip
