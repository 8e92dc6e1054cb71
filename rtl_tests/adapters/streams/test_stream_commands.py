"""Engines with streams: the choices of commands, and the reports in statuses."""

from dataclasses import replace

import pytest
from stream_bench import Message, StreamBench, messages_of, streams
from vectors import needs_icarus, run_vectors

import torusfabric as tf
from torusfabric.adapters.streams.drive.beats import STATUS_SINK, Beat
from torusfabric.adapters.streams.drive.comparison import StreamComparison
from torusfabric.adapters.streams.drive.messages import PlannedRun, random_run_packets
from torusfabric.adapters.streams.drive.traffic import make_traffic
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine, Job
from torusfabric.simulation.jobs import complete_job, random_jobs

#: Invalid commands, each with its error number. The fabric has a reduce (mode 1) on three nodes,
#: with two operators, for up to four flits.
REFUSED = {
    (2, 0, 0, 0, 77): 1,
    (1 << 31, 0, 0, 0, 77): 1,
    (1, 0, 3, 0, 77): 2,
    (1, 5, 0, 0, 77): 3,
    (1, 0, 0, 2, 77): 4,
    (2,): 12,
}


def test_commands_that_are_refused():
    """Each invalid command gets a status with its tag and its error number; valid commands run."""
    fabric = streams("3", "allgather,reduce", max_flits=4, root="any", operators=["add", "max"])
    jobs = [Job(mode=1, length=3, root=2, operation=1), Job(mode=0, length=4)]
    good = [(1, 0, 2, 1, 1), (0, 4, 9, 9, 2)]
    commands = [good[0], *REFUSED, good[1]]
    bench = StreamBench(fabric, 0.2)
    assert bench.run(messages_of(fabric, jobs), commands) == []
    cycles = [fabric.program.cycles(job.length, mode=job.mode) for job in jobs]
    tags = [command[4] if len(command) > 4 else 0 for command in REFUSED]
    refused = [[tag, error, 0] for tag, error in zip(tags, REFUSED.values(), strict=True)]
    assert bench.statuses == [[1, 0, cycles[0]], *refused, [2, 0, cycles[1]]]


@pytest.mark.parametrize("clocks", ["one", "per-node"])
@pytest.mark.parametrize("stall", [0, 0.5])
def test_a_command_of_another_number_of_words_is_refused(stall, clocks):
    """A command with a wrong number of words gets error 12, and the valid commands around it run.

    The status has the fifth word of the command as its tag, or 0.
    """
    fabric = streams("2", "allgather,alltoall", max_flits=2, clocks=clocks)
    lengths = [length for length in range(1, 13) if length != 5]
    jobs = [
        complete_job(fabric, Job(mode=k % 2, length=1 + k % 2)) for k in range(len(lengths) + 1)
    ]
    runs = [PlannedRun(job, random_run_packets(fabric, job, seed=k)) for k, job in enumerate(jobs)]
    cycles = [fabric.program.cycles(job.length, mode=job.mode) for job in jobs]
    traffic = make_traffic(fabric, runs, stall=stall, seed=1, cycles=sum(cycles))
    commands, statuses = [], []
    for k, (job, length) in enumerate(zip(jobs, [*lengths, 0], strict=True)):
        good = (job.mode, job.length, 0, 0, 100 + k)
        words = (k % 2, 1 + k % 2, 0, 0, 7, *range(7))[:length]
        commands += [Beat(word, at == len(packet) - 1)
                     for packet in (good, words) for at, word in enumerate(packet)]  # fmt: skip
        statuses += [[100 + k, 0, cycles[k]], [7 if length > 4 else 0, 12, 0]]
    sources = [*traffic.sources[:-1], traffic.sources[-1]._replace(beats=commands)]
    sinks = [*traffic.sinks[:-1], traffic.sinks[-1]._replace(expected=3 * len(statuses[:-1]))]
    engine = CompiledEngine if clocks == "one" else AmaranthEngine
    log = engine(fabric).run_traffic(replace(traffic, sources=sources, sinks=sinks))
    compared = StreamComparison([run.exchange for run in runs], log)
    assert not any(run.words_wrong for run in compared.run_comparisons)
    words = [arrival.word for arrival in log.arrivals[STATUS_SINK]]
    assert [words[at : at + 3] for at in range(0, len(words), 3)] == statuses[:-1]


@needs_icarus
def test_emitted_commands_of_another_number_of_words_are_refused(tmp_path):
    """The emitted Verilog refuses commands with a wrong number of words, with or without idle
    cycles.

    A command without a last word ends with the next command.
    """
    fabric = streams("2", "allgather,alltoall", max_flits=2)
    tf.emit(fabric).write(tmp_path / "out")
    idle = {"m_axis_status_tready": 1}
    steps, wanted = [{"rst": 1}] * 17, []

    def send(*words, rests, last=True):
        for k, word in enumerate(words):
            beat = {"s_axis_cmd_tdata": word, "s_axis_cmd_tvalid": 1}
            ends = last and k == len(words) - 1
            steps.extend([idle] * rests + [idle | beat | {"s_axis_cmd_tlast": ends}])

    for rests in (0, 1):
        for count in (1, 2, 3, 4, 6, 7, 8, 11):
            send(*[1, 2, 0, 0, 50 + count, 3, 3, 3, 3, 3, 3][:count], rests=rests)
            steps += [idle] * 20
            wanted += [50 + count if count > 4 else 0, 12, 0]
        send(0, 2, 0, 0, 9, rests=rests, last=False)
        send(0, 2, 0, 0, 10, rests=rests)
        send(2, 0, 0, 0, 11, rests=rests + 20)
        steps += [idle] * 20
        wanted += [9, 12, 0, 11, 1, 0]
    shown = run_vectors(tmp_path / "out", tmp_path / "work", steps)
    # A value shown after a step is accepted in the next step, because `tready` is always high.
    found = [each["m_axis_status_tdata"] for each in shown[17:] if each["m_axis_status_tvalid"]]
    assert found == wanted


def barriers(fabric, jobs, places):
    """Return messages, commands and statuses of jobs with barriers in between."""
    mode, nodes, program = len(fabric.program.modes), range(fabric.nodes), fabric.program
    messages, commands, statuses = [], [], []
    for k, message in enumerate(messages_of(fabric, jobs)):
        if k in places:
            words = [[(0, [16 * k + node])] for node in nodes]
            messages.append(Message(Job(), words, words))
            commands.append((mode, 0, 0, 0, 100 + k))
            statuses.append([100 + k, 0, 0])
        job = message.job
        messages.append(message)
        commands.append((job.mode or 0, 0, 0, 0, k))
        statuses.append([k, 0, program.cycles(job.length, mode=job.mode)])
    return messages, commands, statuses


@pytest.mark.parametrize("collectives", ["allgather", "alltoall,allreduce"])
def test_barriers(collectives):
    """Barriers between runs get statuses of 0 cycles, and disturb no run."""
    fabric = streams("2x2", collectives, max_flits=3, barrier=True)
    bench, jobs = StreamBench(fabric, 0.3), random_jobs(fabric, 4, seed=4)
    messages, commands, statuses = barriers(fabric, jobs, places={0, 1, 3})
    assert bench.run(messages, commands) == []
    assert bench.statuses == statuses
    assert bench.runs == [cycles for tag, _, cycles in statuses if tag < 100]


def test_nobody_passes_a_barrier_before_all_have_come():
    """No node passes a barrier before all nodes have arrived."""
    fabric = streams("2x2", "allgather", max_flits=3, barrier=True)
    words = [[(0, [node])] for node in range(4)]
    late = [*words[:3], []]
    assert StreamBench(fabric).run([Message(Job(), late, [[]] * 4)], [(1, 0, 0, 0, 5)]) == []


def test_a_barrier_needs_streams_and_lengths():
    """A barrier needs a stream top and messages of any length."""
    with pytest.raises(tf.InputError, match="Top must be stream for a barrier, not host"):
        tf.Fabric(tf.compile(tf.plan("2", "allgather"), max_flits=3, barrier=True))
    with pytest.raises(tf.InputError, match="A barrier needs messages whose length each run"):
        tf.compile(tf.plan("2", "allgather"), flits=3, barrier=True)


def test_a_barrier_takes_one_word():
    """A barrier packet of two words is refused with error 6."""
    fabric = streams("2x2", "allgather", max_flits=3, barrier=True)
    bench, long = StreamBench(fabric), [[(0, [1, 2])]] * 4
    assert bench.run([Message(Job(), long, [[]] * 4)], [(1, 0, 0, 0, 5)]) == []
    assert bench.statuses == [[5, 6, 0]]
