"""Simulations of fabrics with streams: words, rates, and planted faults."""

from dataclasses import replace

import pytest
from amaranth.hdl import Const
from helpers import few, misrouted
from stream_bench import streams

import torusfabric as tf
from torusfabric.adapters.streams.bench.packets import Packet
from torusfabric.adapters.streams.drive.beats import Beat
from torusfabric.adapters.streams.drive.messages import RunPackets, random_run_packets
from torusfabric.adapters.streams.drive.rates import sustained_rate
from torusfabric.adapters.streams.drive.simulate import draw_jobs, simulate_streams
from torusfabric.adapters.streams.loader import Loader
from torusfabric.errors import InputError, WorkFailed
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine, Engine, choose_engine
from torusfabric.toolchain import cxx


def stream_fabric(topology="2x2", collective="allgather", *, fault=None, width=8, **lengths):
    program = tf.compile(tf.plan(topology, collective), **(lengths or {"flits": 2}))
    return tf.Fabric(fault(program) if fault else program, width=width, top="stream", beat=1)


class TestExchanges:
    """Random packets, sent and received as the collective defines."""

    def exchange(self, collective, **job):
        fabric = stream_fabric("3", collective, max_flits=3)
        return random_run_packets(fabric, tf.Job(length=2, **job), seed=5)

    @pytest.mark.parametrize("collective", ["scatter", "alltoall", "reduce-scatter"])
    def test_each_destination_has_a_packet(self, collective):
        """A sending node has one packet for each destination."""
        for packets in self.exchange(collective).sent:
            assert sorted(number for number, _ in packets) in ([0, 1, 2], [])

    @pytest.mark.parametrize("collective", ["allgather", "alltoall", "gather"])
    def test_packets_come_by_ascending_origins(self, collective):
        """A node receives its packets in the order of their origins."""
        for packets in self.exchange(collective).received:
            assert [number for number, _ in packets] in ([0, 1, 2], [])

    def test_words_of_an_alltoall(self):
        """In an all-to-all each received packet is one that its origin sent to this node."""
        sent, received = self.exchange("alltoall")
        for node, packets in enumerate(received):
            for origin, words in packets:
                assert (node, words) in sent[origin]


def run_both(fabric, **options):
    """Return the reports of both engines."""
    return [
        simulate_streams(fabric, engine=engine(fabric), **options)
        for engine in (AmaranthEngine, CompiledEngine)
    ]


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
def test_engines_agree():
    """Both engines find every word right; without stalls they count the same cycles."""
    fabric = stream_fabric("2", "alltoall", width=40, max_flits=3)
    jobs = draw_jobs(fabric, 4)
    slow, fast = run_both(fabric, jobs=jobs, stall=0.0)
    assert slow.passed, slow.first_wrong
    assert replace(slow, seconds=0, engine="") == replace(fast, seconds=0, engine="")
    assert all(report.passed for report in run_both(fabric, jobs=jobs, stall=0.4))


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
@pytest.mark.parametrize(
    ("topology", "kinds"),
    few(
        2,
        [
            ("4x2", "scatter,broadcast,reduce"),
            ("3", "reduce-scatter,allreduce"),
            (tf.Torus(3, link_latency=3), "allreduce,gather"),
        ],
    ),
)
def test_runs_follow_one_another_at_once(topology, kinds):
    """Runs that follow at once neither store nor load over the words of another run."""
    check_runs(topology, kinds, 5)


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
def test_runs_end_soon_after_their_last_slot():
    """Runs that end before the sequencer could announce their end are right."""
    check_runs("mesh:3", "reduce-scatter", 3, link_latency="3")


def check_runs(topology, kinds, most, **options):
    """Check thirty random runs of some collectives with the compiled engine."""
    plans = [tf.plan(topology, kind, flits=most, **options) for kind in kinds.split(",")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=most), width=8, top="stream")
    report = simulate_streams(fabric, jobs=draw_jobs(fabric, 30), engine=CompiledEngine(fabric))
    assert report.passed, report.first_wrong


def test_commands_choose_modes_and_operators():
    """Commands choose mode, length and operator of each run."""
    fabric = streams("2", "allgather,allreduce", max_flits=3, operators=["add", "max"])
    jobs = draw_jobs(fabric, 6)
    report = tf.simulate(fabric, jobs=jobs, stall=0.3)
    assert report.passed, report.first_wrong
    assert {(job.mode, job.operation) for job in report.jobs} == {(0, None), (1, 0), (1, 1)}
    assert [job.length for job in report.jobs] == [job.length for job in jobs]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_nodes_with_clocks_of_their_own(seed):
    """With a clock for each node every word is right, and no rate is reported."""
    fabric = streams("2x2", "allgather", max_flits=2, clocks="per-node")
    report = tf.simulate(fabric, stall=0.2, seed=seed)
    assert report.passed, report.first_wrong
    assert report.rate is None
    assert choose_engine(fabric).engine.name == "amaranth"


def test_a_wrong_word_in_another_domain_is_found():
    """A wrong word is found, also if nodes have clocks of their own."""
    program = misrouted(tf.compile(tf.plan("2x2", "alltoall"), flits=1))
    fabric = tf.Fabric(program, width=8, top="stream", beat=1, clocks="per-node")
    assert tf.simulate(fabric).words_wrong > 0


def test_barriers_alone_are_simulated():
    """Runs of barriers alone can be simulated."""
    program = tf.compile(tf.plan("2", "allgather"), max_flits=2, barrier=True)
    fabric = tf.Fabric(program, width=8, top="stream")
    report = tf.simulate(fabric, jobs=[tf.Job(mode=1)] * 2)
    assert report.passed
    assert report.words_checked == 2 * fabric.nodes


def test_barriers_stand_between_runs():
    """Barriers are simulated between the other runs."""
    program = tf.compile(tf.plan("2", "allgather"), max_flits=2, barrier=True)
    report = tf.simulate(tf.Fabric(program, width=8, top="stream", beat=1), stall=0.3)
    assert report.passed, report.first_wrong
    assert [job.collective for job in report.jobs[:4]] == ["allgather", "barrier"] * 2


@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_a_wrong_word_is_found(stall):
    """The simulation finds wrong words of a faulty router, and names the first one."""
    report = tf.simulate(stream_fabric("3x3", "alltoall", flits=1, fault=misrouted), stall=stall)
    assert report.words_wrong > 0
    assert "at node" in report.first_wrong
    assert not report.passed


def test_a_fabric_that_rests_too_soon_is_an_error():
    """A fabric that stays idle with words outstanding is an error; here each source lacks words."""

    class Short(AmaranthEngine):
        def run_traffic(self, traffic, progress=None):
            for source in traffic.sources:
                source.beats[-1:] = [Beat(0, last=False)]
            return super().run_traffic(replace(traffic, patience=50), progress)

    fabric = stream_fabric()
    with pytest.raises(WorkFailed, match=r"After .* cycles the fabric rests with"):
        simulate_streams(fabric, jobs=[tf.Job()], engine=Short(fabric))


def test_runs_that_links_limit():
    """The cycles of the program limit the rate if each node sends and receives one short packet."""
    exchange = RunPackets([[Packet(0, (1, 2))]] * 3, [[Packet(0, (1, 2))]] * 3)
    rate = sustained_rate([exchange] * 4, [9] * 4, [20, 29, 38, 47], stall=0.0, buffers=2, width=16)
    assert (rate.limited_by, rate.share, rate.least_cycles) == ("run", 1, 27)
    assert rate.words_per_cycle == 18 / 27
    assert rate.to_json()["bytes_per_cycle"] == round(36 / 27, 3)


def test_ports_that_rest_limit_more():
    """Stalls of one half double the cycles of a rate that ports limit."""
    exchange = RunPackets([[Packet(0, (1,))]] * 3, [[Packet(k, (1,) * 6) for k in range(3)]] * 3)
    rates = [
        sustained_rate([exchange] * 4, [9] * 4, [20, 60, 90, 120], stall=stall, buffers=2, width=16)
        for stall in (0.0, 0.5)
    ]
    assert [rate.limited_by for rate in rates] == ["unload", "unload"]
    assert [rate.least_cycles for rate in rates] == [54, 108]


def test_runs_follow_one_another_at_the_rate_of_ports():
    """Ports limit an all-gather, which brings each node more words than a run takes cycles."""
    report = tf.simulate(stream_fabric("3x3", flits=4), jobs=[tf.Job()] * 6)
    assert report.rate.limited_by == "unload"
    assert report.rate.share >= 0.95


@pytest.mark.parametrize("stall", [-0.1, 0.96, float("nan"), float("inf")])
def test_a_stall_out_of_range_is_refused(stall):
    """A stall outside 0 to 0.95 is refused."""
    with pytest.raises(InputError, match=r"Stall must be from 0 to 0\.95, not"):
        simulate_streams(stream_fabric(), stall=stall)


def test_only_ports_of_streams_rest():
    """Only the ports of a stream top can stall."""
    fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=8)
    with pytest.raises(
        InputError, match=r"^Stall 0\.\d+ needs ports that can rest, those of the top stream"
    ):
        tf.simulate(fabric, stall=0.5)


def test_an_engine_may_have_no_streams():
    """An engine without streams is refused."""

    class Ports(Engine):
        name, run_all = "ports", None

    fabric = stream_fabric()
    with pytest.raises(
        InputError, match="Engine for ports of nodes must be amaranth or compiled, not ports"
    ):
        tf.simulate(fabric, engine=Ports(fabric))


def test_small_work_is_not_compiled():
    """A small simulation uses the engine that needs no compiler."""
    fabric = stream_fabric()
    assert choose_engine(fabric).engine.name == "amaranth"
    with pytest.raises(InputError, match="must be one of auto, amaranth, compiled, "):
        choose_engine(fabric, "verilator")


def test_waves_show_streams(tmp_path):
    """Waveforms contain the signals of streams."""
    fabric = stream_fabric("2", "broadcast", flits=1)
    engine = AmaranthEngine(fabric, wave=tmp_path / "waves.vcd")
    assert simulate_streams(fabric, jobs=[tf.Job()], engine=engine).passed
    assert "s_axis_0_tvalid" in (tmp_path / "waves.vcd").read_text()


#: Fabrics and the error numbers that can occur in each.
FABRICS = {
    "one length": ("2", "allgather", {"flits": 2}, {6}),
    "destinations": ("3", "alltoall", {"max_flits": 2}, {6, 7}),
    "commands": (
        "2",
        "allgather,reduce",
        {"max_flits": 2, "root": "any", "operators": ["add", "max"], "barrier": True},
        {1, 2, 3, 4, 6},
    ),
}


@pytest.mark.parametrize("name", few(2, [*FABRICS], tuples=True))
def test_what_is_no_good_is_dropped(name):
    """Faulty packets and commands are dropped with the right error; all other words are right."""
    topology, collectives, options, errors = FABRICS[name]
    fabric = streams(topology, collectives, **options)
    jobs = draw_jobs(fabric, 12)
    report = simulate_streams(fabric, jobs=jobs, stall=0.2, faults=0.5, seed=3)
    assert report.passed, report.first_wrong
    assert set(report.dropped) == errors
    assert len(report.jobs) + sum(report.dropped.values()) == len(jobs)
    assert report.rate is None


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
def test_engines_agree_on_errors():
    """Both engines drop the same faulty packets."""
    fabric = streams("3", "alltoall", max_flits=2)
    reports = [
        simulate_streams(fabric, jobs=[tf.Job(length=2)] * 12, faults=0.5, engine=engine(fabric))
        for engine in (AmaranthEngine, CompiledEngine)
    ]
    slow, fast = (replace(report, seconds=0, engine="") for report in reports)
    assert slow == fast
    assert slow.passed, slow.first_wrong


@pytest.mark.parametrize("collectives", ["alltoall", "alltoall,allgather"])
def test_an_error_that_is_not_told_is_found(collectives, monkeypatch):
    """Loaders that accept every destination are found out by faulty packets."""
    monkeypatch.setattr(Loader, "is_wrong_destination", lambda *_: Const(0))
    fabric = streams("3", collectives, max_flits=2)
    jobs = [tf.Job(mode=0 if "," in collectives else None, length=1)] * 12
    report = simulate_streams(fabric, jobs=jobs, faults=0.5, seed=2)
    assert 7 in report.dropped
    assert not report.passed


@pytest.mark.parametrize("faults", [-0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(faults):
    """A share of faults outside 0 to 1 is refused."""
    with pytest.raises(InputError, match="Share of faults must be from 0 to 1, not"):
        simulate_streams(streams("2", "allgather", flits=1), faults=faults)
