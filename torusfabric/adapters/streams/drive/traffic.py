"""The traffic of streams for some runs: packets, commands and images, all of them as beats.

A *beat* is one transfer of a stream. A *source* is the sender at a stream into the fabric, a *sink*
the receiver at a stream out of it; both stall at random. The *driver* moves the beats in a
simulation. A `StreamTraffic` passes itself to one of two drivers: the driver for Amaranth's
simulator, or the driver for a compiled model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....contract.traffic import PortTraffic
from ....errors import WorkFailed
from ....rtl.fabric import Fabric
from ....rtl.run_choices import RunError
from ..bench.packets import Packet
from ..ports import COMMAND_WORDS, LOAD_MODE, STATUS_WORDS, needs_commands
from ..sections import stream_nodes
from .amaranth import StreamBench
from .beats import STATUS_SINK, Beat, Sink, Source, StreamLog
from .compiled import run_compiled_traffic

if TYPE_CHECKING:
    from ....rtl.assembly import Assembly
    from ....simulation.engines.base import Progress
    from ....simulation.engines.session import Session
    from .messages import PlannedRun

__all__ = ["StreamTraffic", "beat_count", "packet_beats", "make_traffic"]

#: Cycles after the last expected beat in which no other may arrive.
SETTLE_CYCLES = 64

#: Cycles without any beat after which the simulation is given up, in addition to those of the
#: longest run.
PATIENCE_CYCLES = 500


@dataclass(frozen=True)
class StreamTraffic(PortTraffic):
    """All beats that a simulation sends into streams, and the numbers of beats that must arrive.

    A beat is one transfer of a stream.

    Parameters
    ----------
    sources : list of Source
        The beats into each stream of the fabric.
    sinks : list of Sink
        The receivers, with the number of beats that each must get.
    seed : int
        Seed of the stalls.
    patience, settling : int
        Cycles without any beat after which the simulation ends: `patience` while beats are missing,
        `settling` after all have arrived.
    loads : bool
        True if the first command loads an image.
    """

    sources: list[Source]
    sinks: list[Sink]
    seed: int
    patience: int
    settling: int = SETTLE_CYCLES
    loads: bool = False

    @property
    def n_beats(self) -> int:
        """Number of all beats that are sent and received."""
        return sum(len(s.beats) for s in self.sources) + sum(s.expected for s in self.sinks)

    def simulate(
        self, design: Assembly, run: Callable[..., Any], progress: Progress | None
    ) -> StreamLog:
        """Send and receive all beats in Amaranth's simulator; return the log.

        `design` is the simulated fabric. `run` simulates it with the testbenches that it is given.
        `progress`, if given, is called with the numbers of transferred beats and of all beats.
        """
        bench = StreamBench(design, self, progress)
        run(*bench.testbenches())
        self.check_complete(bench.log, bench.n_unsent)
        return bench.log

    def run_compiled(self, session: Session, progress: Progress | None) -> StreamLog:
        """Send and receive all beats with a compiled model; return the log.

        `session` is the running model. `progress`, if given, is called with the number of
        transferred beats and the number of all beats.
        """
        log, unsent = run_compiled_traffic(session, self, progress)
        self.check_complete(log, unsent)
        return log

    def check_complete(self, log: StreamLog, unsent: int) -> None:
        """Check that the fabric has accepted all beats, and that all expected beats have arrived.

        Parameters
        ----------
        log : StreamLog
            Record of the simulation.
        unsent : int
            Number of beats that the fabric has not accepted.

        Raises
        ------
        WorkFailed
            If a word is missing, was not accepted, or changed while it waited; or if the fabric
            refused the image.
        """
        if self.loads and any(arrival.word for arrival in log.arrivals[STATUS_SINK][1:2]):
            raise WorkFailed(
                "The fabric in simulation refused its image; make both again from the same "
                "selection"
            )
        if log.unsteady:
            raise WorkFailed(f"The word at {log.unsteady} changed while it waited to be taken")
        missing = sum(max(sink.expected - len(log.arrivals[sink.prefix]), 0) for sink in self.sinks)
        if missing or unsent:
            raise WorkFailed(
                f"After {log.clocks} cycles the fabric rests with {unsent} words not taken and "
                f"{missing} words not given"
            )


def make_traffic(
    fabric: Fabric,
    runs: Sequence[PlannedRun],
    *,
    stall: float,
    seed: int,
    cycles: int,
) -> StreamTraffic:
    """Return the beats of all streams for some runs, one after another: packets and commands.

    Parameters
    ----------
    runs : sequence of PlannedRun
        The runs. Their jobs become commands, if the fabric has a command stream.
    stall : float
        The probability in each cycle that a port stalls.
    seed : int
        Seed of the stalls.
    cycles : int
        Cycles of the longest run.
    """
    exchanges = [run.exchange for run in runs]
    sources, sinks = [], []
    for node in stream_nodes(fabric.program.topology).tolist():
        sent = (packet for exchange in exchanges for packet in exchange.sent[node])
        received = (packet for exchange in exchanges for packet in exchange.received[node])
        sources.append(
            Source(f"s_axis_{node}", list(packet_beats(sent, fabric.width, fabric.beat)), stall)
        )
        count = sum(beat_count(packet, fabric.beat) for packet in received)
        sinks.append(Sink(f"m_axis_{node}", count, stall))
    empty = bool(fabric.tables and fabric.tables.empty)
    if needs_commands(fabric.program):
        modes, commands = fabric.program.modes, list[Beat]()
        for number, run in enumerate(runs):
            # In a mode with several forms, the length chooses the form, so a command must have the
            # length.
            mode = run.job.mode or 0
            says = mode < len(modes) and len(modes[mode].forms) > 1
            values = {name: value or 0 for name, value in run.job._asdict().items()}
            # Every second command leaves the length to the packets.
            if number % 2 and run.error is not RunError.LENGTH and not says:
                values["length"] = 0
            values["tag"] = number
            commands += [Beat(values[name], name == COMMAND_WORDS[-1]) for name in COMMAND_WORDS]
        if empty:
            words = [LOAD_MODE] + [0] * (len(COMMAND_WORDS) - 1) + fabric.tables.image.words
            loading = [Beat(word, k == len(words) - 1) for k, word in enumerate(words)]
            commands = [*loading, *commands]
        sources.append(Source("s_axis_cmd", commands, stall))
        sinks.append(Sink(STATUS_SINK, len(STATUS_WORDS) * (len(runs) + empty), stall))
    patience = round((PATIENCE_CYCLES + cycles) / max(1 - stall, 0.01))
    return StreamTraffic(sources, sinks, seed, patience, loads=empty)


def beat_count(packet: Packet, beat: int) -> int:
    """Return the number of beats of a packet; a beat has up to `beat` flits."""
    return -(-len(packet.words) // beat)


def packet_beats(packets: Iterable[Packet], width: int, beat: int = 1) -> Iterable[Beat]:
    """Yield the beats of packets, `beat` flits each; the last beat of a packet may have fewer.

    Parameters
    ----------
    packets : iterable of Packet
        Packets in the order in which they are sent.
    width : int
        Bits of a flit.
    beat : int
        Flits of a beat.
    """
    for number, words in packets:
        for start in range(0, len(words), beat):
            flits = words[start : start + beat]
            word = sum((flit or 0) << k * width for k, flit in enumerate(flits))
            keep = (1 << len(flits) * width // 8) - 1
            yield Beat(word, start + beat >= len(words), number, keep=keep)
