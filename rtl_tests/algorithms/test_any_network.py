"""Collectives on any network: steps at the bound of the worst cut, and correct hardware."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil

import networkx as nx
import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.algorithms import Options
from torusfabric.algorithms.network import plan as network_plan
from torusfabric.algorithms.network import spread
from torusfabric.algorithms.network.plan import ANY_NETWORK
from torusfabric.algorithms.network.repair import repair_alltoall
from torusfabric.algorithms.network.shared_trees import shared_trees
from torusfabric.algorithms.network.slots import schedule_paths
from torusfabric.algorithms.network.spread import route_messages
from torusfabric.algorithms.network.trees import disjoint_trees_from, max_link_disjoint_trees
from torusfabric.analysis import congestion
from torusfabric.analysis.congestion import MEMORY_CYCLES, WeightedArcs, congestion_time
from torusfabric.analysis.cuts import worst_cut
from torusfabric.analysis.facts import schedule_facts
from torusfabric.analysis.partitions import worst_partition
from torusfabric.analysis.volume import least_path_length, least_time
from torusfabric.collective import parse_collective
from torusfabric.program.timing import round_pause_cycles
from torusfabric.schedule import Rounds
from torusfabric.schedule.sum_trees import find_sum_trees
from torusfabric.topology import Faulty, Graph, parse_topology

#: Collectives without offsets. Exchange and halo have tests in `test_local`.
KINDS = [kind for kind in ANY_NETWORK.collectives if kind not in ("exchange", "halo")]

#: A ring of one-way links with a second arc from node 2 to node 0, and two cliques that one link
#: joins.
ONE_WAY = Graph([(0, 1), (1, 2), (2, 3), (3, 0), (2, 0)])
CLIQUES = Graph(nx.barbell_graph(4, 0))


def cut_of(topology, collective):
    """Return the cut that gives the bound, which must exist."""
    cut = worst_cut(topology, collective)
    assert cut is not None
    return cut


def plan(topology, kind, **options):
    """Return a checked schedule."""
    network = topology if isinstance(topology, tf.Topology) else parse_topology(topology)
    collective = parse_collective(kind, topology=network)
    schedule = ANY_NETWORK(network, collective, Options(**options))
    tf.check(schedule)
    return schedule


# Message times of all-gathers on faulty networks that ForestColl reaches, in its section 7.3.
@pytest.mark.parametrize(
    ("name", "chunks", "steps"),
    few(
        5,
        [
            ("4x4!0:+0", 1, 5),
            ("5x5!0:+0", 1, 8),
            ("6x6!0:+0", 3, 35),
            ("8x8!0:+0", 1, 21),
            ("4x4x4!0:+0", 5, 63),
            ("4x4!0:+0,0:-0", 2, 15),
            ("4x4!10", 3, 14),
            ("5x5!10", 3, 23),
            ("6x6!14", 3, 34),
            ("4x4x4!3", 5, 62),
            ("mesh:4x6", 2, 23),
            ("cube:4!0:1", 1, 5),
        ],
    ),
)
def test_all_gathers_meet_the_cut(name, chunks, steps):
    """All-gathers and reduce-scatters take as many steps as the worst cut demands."""
    for kind in ("allgather", "reduce-scatter"):
        schedule = plan(name, kind, chunks=chunks)
        assert schedule.round_count == steps == tf.bound(schedule)
    topology = parse_topology(name)
    assert cut_of(topology, parse_collective("allgather")).message_times * chunks == steps


@pytest.mark.parametrize("topology", ["4x4!5:-1,10", "mesh:3x4", ONE_WAY, CLIQUES], ids=str)
def test_scatters_meet_the_cut_but_for_a_step(topology):
    """Scatters and gathers take at most one step more than the bound."""
    for kind in ("scatter", "gather"):
        schedule = plan(topology, kind, chunks=1)
        least = ceil(least_time(schedule.topology, schedule.collective))
        assert least <= schedule.round_count <= least + 1


@pytest.mark.parametrize(
    "name", few(3, ["4x4!0:+0", "mesh:4x6", "6x6!14", "3x6!16", "cube:3!3"], tuples=True)
)
def test_total_exchanges_are_near_the_bound(name):
    """An all-to-all takes at most 10 % more steps than the bound of the linear program."""
    schedule = plan(name, "alltoall")
    least = least_time(schedule.topology, schedule.collective) * schedule.chunks
    assert least <= schedule.round_count <= 1.1 * least


@pytest.mark.parametrize("name", few(2, ["3x6!16", "7x3!8", "cube:3!0:0"], tuples=True))
def test_chunks_come_near_the_least_message_times(name):
    """Messages in several chunks take at most 3 % or 4 steps more than the bound.

    One flit is sent whole.
    """
    for kind in ("allgather", "reduce-scatter", "scatter", "gather"):
        schedule = plan(name, kind)
        least = least_time(schedule.topology, schedule.collective) * schedule.chunks
        assert least <= schedule.round_count <= max(1.03 * least, least + 4)
        assert tf.plan(name, kind, flits=1).chunks == 1


@pytest.mark.parametrize("leaves", few(3, [3, 8, 16, 4, 5, 32]))
def test_total_exchanges_around_a_hub(leaves):
    """An all-to-all on a star of L leaves takes L steps, whichever node is the hub."""
    for hub in (0, leaves // 2, leaves):
        star = Graph([edge for k in range(leaves + 1) for edge in ((hub, k), (k, hub)) if k != hub])
        assert plan(star, "alltoall", chunks=1).round_count == leaves


@pytest.mark.parametrize(
    "graph",
    few(
        3,
        [
            nx.wheel_graph(17),
            nx.complete_bipartite_graph(2, 10),
            nx.barabasi_albert_graph(20, 2, seed=1),
            nx.complete_bipartite_graph(3, 7),
            nx.wheel_graph(9),
            nx.barabasi_albert_graph(40, 2, seed=3),
        ],
    ),
)
def test_total_exchanges_around_hubs(graph):
    """An all-to-all around hubs takes at most 10 % more than the bound, in at most 4 chunks."""
    schedule = plan(Graph(graph), "alltoall")
    least = least_time(schedule.topology, schedule.collective)
    assert Fraction(schedule.round_count, schedule.chunks) <= Fraction(11, 10) * least
    assert schedule.chunks <= 4


@pytest.mark.parametrize(
    "graph",
    few(
        4,
        [
            nx.complete_bipartite_graph(4, 60),
            nx.wheel_graph(17),
            nx.complete_bipartite_graph(2, 7),
            nx.convert_node_labels_to_integers(
                nx.corona_product(nx.path_graph(5), nx.empty_graph(3))
            ),
            nx.wheel_graph(64),
            nx.complete_bipartite_graph(8, 24),
            nx.barabasi_albert_graph(64, 2, seed=5),
            nx.random_labeled_tree(40, seed=2),
        ],
    ),
)
@pytest.mark.parametrize("kind", ["alltoall", "scatter"])
def test_whole_messages_take_little_more_than_the_bound(graph, kind):
    """Whole messages take at most 5 % more steps than the bound, and the diameter."""
    schedule = plan(Graph(graph), kind, chunks=1)
    least = least_time(schedule.topology, schedule.collective)
    assert schedule.round_count <= Fraction(21, 20) * least + schedule.topology.diameter


@pytest.mark.parametrize(
    "graph",
    few(
        2,
        [
            nx.connected_watts_strogatz_graph(36, 4, 0.1, seed=1),
            nx.barabasi_albert_graph(40, 2, seed=3),
            nx.random_regular_graph(3, 30, seed=1),
            nx.gnp_random_graph(30, 0.12, seed=4, directed=True),
        ],
    ),
)
def test_even_loads_come_near_the_linear_program(graph, monkeypatch):
    """Messages moved to shorter paths prove a bound at most 1 % below the linear program."""
    topology = Graph(graph)
    exact = congestion_time(topology)
    monkeypatch.setattr(congestion, "MOST_EXACT_CELLS", 0)
    # Results are kept by all arguments.
    found = congestion_time(topology, known=Fraction(1, 1000))
    assert 0.99 * exact <= found <= 1.000001 * exact


def test_bounds_of_small_worlds_are_near_the_plan():
    """In a small world of 60 nodes, an all-to-all takes 1 % more steps than its bound."""
    schedule = plan(Graph(nx.connected_watts_strogatz_graph(60, 4, 0.1, seed=3)), "alltoall")
    least = least_time(schedule.topology, schedule.collective)
    assert schedule.round_count <= 1.02 * least * schedule.chunks


def test_arcs_that_stay_too_busy_become_longer(monkeypatch):
    """On a wheel, messages go far along the rim, so that the hub is not too busy.

    Without longer arcs, 51 messages cross the busiest arc after the same work.
    """
    monkeypatch.setattr(spread, "MOST_LOOKS", 50_000)
    arcs = WeightedArcs(Graph(nx.wheel_graph(64)))
    origin, target = np.nonzero(~np.eye(arcs.nodes, dtype=bool))
    paths = route_messages(arcs, origin, target, 45.0)
    assert most_on_an_arc(paths) <= 48


@pytest.mark.parametrize("name", ["4x4", "cube:4"])
def test_blocks_are_ejected_until_no_step_can_be_saved(name):
    """All blocks arrive within as many steps as the busiest arc has blocks."""
    arcs = WeightedArcs(parse_topology(name))
    origin, target = np.nonzero(~np.eye(arcs.nodes, dtype=bool))
    paths = route_messages(arcs, origin, target, 8.0)
    assert most_on_an_arc(paths) == 8
    assert len(schedule_paths(arcs, paths, (origin, target), np.arange(len(paths)))) == 8


def test_ejected_blocks_wait_for_slow_links():
    """A block that arrives over a slow link leaves later, also if another block ejected it."""
    arcs = WeightedArcs(parse_topology("4x4x4!0:+0=9,21:-1=5,3"))
    origin, target = np.nonzero(~np.eye(arcs.nodes, dtype=bool))
    paths = route_messages(arcs, origin, target, 32.0)
    slow = [arcs.forwarding_steps[arc] > 1 for path in paths for arc in path[:-1]]
    assert sum(slow) > 50
    steps = schedule_paths(arcs, paths, (origin, target), np.arange(len(paths)))
    assert len(steps) == 32  # 35 before blocks are ejected
    apart = dict(zip(zip(arcs.tail, arcs.port, strict=True), arcs.forwarding_steps, strict=True))
    ready = dict.fromkeys(range(len(paths)), 0)
    for number, step in enumerate(steps):
        for block, *arc in zip(step.listed.ids, step.source, step.hops[:, 0], strict=True):
            assert ready[block] <= number
            ready[block] = number + apart[tuple(arc)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("links", few(2, [50, 200, 127, 128, 129, 1000]))
def test_parallel_links(links):
    """A thousand links between two nodes overflow neither weights nor port numbers."""
    topology = Graph(nx.MultiGraph([(0, 1)] * links))
    for kind in KINDS:
        schedule = plan(topology, kind)
        assert schedule.round_count <= 2
        assert schedule.chunks >= min(links, 32)
    assert tf.plan(topology, "gather", algorithm="max-flow").round_count == 1


def test_hub_of_many_ports(tmp_path):
    """A star of 200 leaves is planned, saved and loaded."""
    for kind in ("broadcast", "gather"):
        schedule = tf.plan(Graph(nx.star_graph(200)), kind)
        schedule.save(tmp_path / "plan.json", force=True)
        assert tf.load(tmp_path / "plan.json").digest == schedule.digest


def test_total_exchange_on_a_large_graph():
    """The bound of a very large graph comes from the node with the fewest links."""
    graph = Graph(nx.star_graph(600))
    assert cut_of(graph, parse_collective("alltoall")).message_times == 600


@pytest.mark.parametrize("name", ["4x8x8~1,2:0!0:+0", "4x8x8~1,2:0!5", "4x8x8!0:+1,9:-2:out"])
def test_schedules_are_repaired(name):
    """Faults in a network of 256 nodes cost an all-to-all at most 5 % of the steps."""
    topology = parse_topology(name)
    collective = parse_collective("alltoall")
    steps = repair_alltoall(topology, collective.blocks(topology, 1))
    assert steps is not None
    schedule = Rounds(topology=topology, collective=collective, chunks=1, transfers=steps)
    tf.check(schedule)
    assert tf.bound(schedule) <= len(steps) <= 1.05 * tf.bound(schedule)


@pytest.mark.parametrize("name", ["8x8", "mesh:4x4", "4x4!0:+0=4", "cube:3!0:0,1:1,2:2,3:0"])
def test_no_repair(name):
    """A repair needs faults, few of them, of a network that looks the same from every node."""
    topology = parse_topology(name)
    assert repair_alltoall(topology, parse_collective("alltoall").blocks(topology, 1)) is None


@pytest.mark.long
def test_large_twisted_torus_with_a_broken_link():
    """Both an all-to-all and a long all-reduce on 1,024 nodes are within 3 % of their bounds."""
    topology = parse_topology("8x8x16~2:0,1!0:+0")
    schedule = plan(topology, "alltoall")
    assert 1190 == tf.bound(schedule) <= schedule.round_count <= 1.03 * 1190
    reduced = plan(topology, "allreduce")
    assert schedule_facts(reduced)["stream"] <= 1.03 * least_time(topology, reduced.collective)


def test_the_cut_between_cliques():
    """The link between two cliques is the worst cut, and is busy in all steps but the last."""
    cut = cut_of(CLIQUES, parse_collective("allgather"))
    assert (cut.messages, cut.arcs, len(cut.inside)) == (4, 1, 4)
    schedule = plan(CLIQUES, "allgather", chunks=1)
    assert schedule.round_count == 5  # the last block goes on inside
    facts = schedule_facts(schedule)
    assert facts["cut"].startswith("4 messages over 1 link into nodes ")


@pytest.mark.parametrize("topology", ["4x4!0:+0", "mesh:3x3", "8x4~4", ONE_WAY], ids=str)
def test_trees_share_no_arc(topology):
    """There are as many arc-disjoint trees as the smallest cut has arcs, which is the maximum."""
    network = topology if isinstance(topology, tf.Topology) else parse_topology(topology)
    count = cut_of(network, parse_collective("broadcast", root=1)).arcs
    trees = disjoint_trees_from(network, 1, count)
    node, port = network.upstream
    used = [
        (int(node[child, trees.entry[tree, child]]), int(port[child, trees.entry[tree, child]]))
        for tree, child in zip(*np.nonzero(trees.depth), strict=True)
    ]
    assert len(set(used)) == len(used) == count * (network.nodes - 1)
    for tree, child in zip(*np.nonzero(trees.depth), strict=True):
        parent = node[child, trees.entry[tree, child]]
        assert network.linked[parent, port[child, trees.entry[tree, child]]]
        assert trees.depth[tree, child] == trees.depth[tree, parent] + 1


@pytest.mark.parametrize("kind", few(5, [*KINDS][::-1]))
@pytest.mark.parametrize("topology", few(1, ["3x3!1:+1:out,4", "mesh:2x3", ONE_WAY]), ids=str)
def test_hardware(topology, kind):
    """On any network every word arrives, in the cycles that the program predicts."""
    schedule = plan(topology, kind)
    program = tf.compile(schedule, flits=schedule.chunks)
    report = tf.simulate(tf.Fabric(program, width=8))
    assert (report.words_wrong, report.cycles) == (0, program.cycles())


@pytest.mark.parametrize("kind", few(1, ["allgather", "reduce-scatter"]))
def test_rounds_follow_one_another_without_a_pause(kind):
    """Rounds follow one another without a pause, also over slow links.

    A round takes as long as its flits, or as a received word needs until it can be sent on.
    """
    schedule = plan("3x3!0:+0,4:+1=4", kind, chunks=1)
    program = tf.compile(schedule, max_flits=12)
    least, steps = program.loop.least, schedule.round_count
    assert [program.cycles(length) - program.cycles(least) for length in (1, least + 2)] == [
        0,
        2 * program.loop.n_rows,
    ]
    assert steps <= program.loop.n_rows <= steps + (kind == "reduce-scatter")
    assert tf.simulate(tf.Fabric(program, width=8)).passed
    hasty = replace(program.form, loop=replace(program.loop, least=least - 1))
    wrong = replace(program, forms=(hasty,))
    assert not tf.simulate(tf.Fabric(wrong, width=8)).passed


def test_planners_know_how_long_what_comes_waits():
    """The planners' delay of a received word equals the delay that the compiler uses.

    Planners may not import the packages that compile, so they have a constant of their own.
    """
    links = np.array([1, 4])
    assert (MEMORY_CYCLES + links == 1 + round_pause_cycles(links)).all()


def test_short_sums_go_up_a_tree_and_down():
    """A sum of one flit uses one tree in one chunk.

    Long sums use trees that share one-way links.
    """
    assert tf.plan(ONE_WAY, "allreduce", flits=1).chunks == 1
    assert tf.plan(ONE_WAY, "allreduce", flits=512).chunks > 4


@pytest.mark.parametrize(
    "name",
    few(
        2,
        ["mesh:8x8", "4x4!5:-1,10", "mesh:3x3", "mesh:4x4", "cube:3", "4x4!0:+0:out"],
        tuples=True,
    ),
)
def test_sums_go_along_trees_that_share_arcs(name):
    """Trees that share arcs load the busiest arc within 3 % of the worst partition.

    The schedule takes only the way there and back, and four steps, in addition.
    """
    topology = parse_topology(name)
    least = least_time(topology, parse_collective("allreduce"))
    trees = shared_trees(topology, least)
    assert least <= Fraction(trees.most, len(trees.up)) <= Fraction(103, 100) * least
    assert most_on_an_arc([*trees.up, *trees.down]) == trees.most
    copies = -(-40 // trees.most)
    schedule = plan(topology, "allreduce", trees=len(trees.up), chunks=copies * len(trees.up))
    there_and_back = least_path_length(topology, schedule.collective)
    assert schedule.round_count <= copies * trees.most + there_and_back + 4


def most_on_an_arc(paths):
    """Return the number of paths or trees that use the busiest arc."""
    return Counter(arc for path in paths for arc in path).most_common(1)[0][1]


def test_trees_of_large_networks_are_counted_exactly():
    """A single link between two parts allows one tree, though the nodes have links for two."""
    torus = tf.Torus(4, 4, 20)
    last = torus.coordinates(np.arange(torus.nodes))[2]
    cut = [f"{node}:+2" for node in np.flatnonzero((last == 9) | (last == 19)) if node != 19]
    network = Faulty(torus, cut)
    assert int(1 / worst_partition(network).message_times) == 2
    assert max_link_disjoint_trees(network) == 1
    plan(network, "allreduce")


def test_trees_that_share_no_link_are_shallow():
    """An all-reduce along trees without a common link takes at most 5 steps more than it must.

    No link is to spare here, and the first start of the search gives trees 11 deep. Therefore the
    planner searches from other starts.
    """
    schedule = plan("8x8!9", "allreduce")
    assert schedule.round_count <= least_path_length(schedule.topology, schedule.collective) + 5


@pytest.mark.long
def test_large_networks_are_not_searched_for_trees(monkeypatch):
    """A torus of a thousand nodes is planned without a search for trees, to save time."""
    monkeypatch.setattr(
        network_plan, "shared_trees", lambda *_: pytest.fail("trees are searched for")
    )
    assert tf.plan("32x32", "allreduce", flits=32, check=False).chunks > 1
    with pytest.raises(pytest.fail.Exception, match="searched"):
        tf.plan("mesh:4x4", "allreduce", flits=32, check=False)


def test_sums_of_shared_trees_in_hardware():
    """Sums along trees that share arcs are right in hardware, and faster than along one tree.

    On a 4x4 mesh they take 677 cycles, and 1,036 along one tree.
    """
    for topology, trees, chunks in (("mesh:2x3", 5, 10), (ONE_WAY, 8, 8)):
        schedule = plan(topology, "allreduce", trees=trees, chunks=chunks)
        program = tf.compile(schedule, max_flits=3 * chunks)
        assert program.loop.n_rows == schedule.round_count
        assert tf.simulate(tf.Fabric(program, width=8)).passed
    schedule = plan("mesh:4x4", "allreduce", trees=8, chunks=256)
    assert tf.compile(schedule, flits=1024).cycles() < 690


@pytest.mark.parametrize("name", ["4x4!0:+0", "4x4!0:+0,5:-1", "3x5!7", "3x3x3!1:+2", "cube:4!0:0"])
def test_sums_go_up_and_down_trees_that_share_no_link(name):
    """Sums use as many link-disjoint trees as the worst partition allows, and stream."""
    schedule = plan(name, "allreduce")
    topology, trees = schedule.topology, find_sum_trees(schedule)
    assert trees is not None
    least = worst_partition(topology).message_times
    assert len(trees.up) == schedule.chunks == int(1 / least)
    assert least == least_time(topology, schedule.collective)
    assert schedule_facts(schedule)["cut"].startswith(f"{2 * (topology.nodes - 1)} messages over ")
    program = tf.compile(schedule, flits=64)
    assert program.cycles() <= 64 * float(least) * 1.08 + 5 * topology.diameter + 16


def test_partitions_are_the_worst():
    """The worst partition is the worst of all partitions of small graphs."""
    for seed in range(12):
        graph = nx.gnp_random_graph(5, 0.5, seed=seed)
        if not nx.is_connected(graph):
            continue
        least = max(
            Fraction(max(parts), crossing)
            for parts in product(range(5), repeat=5)
            if max(parts) and set(parts) == {*range(max(parts) + 1)}
            if (crossing := sum(parts[a] != parts[b] for a, b in graph.edges))
        )
        assert worst_partition(Graph(graph)).message_times == least


def test_saved_and_loaded(tmp_path):
    """A file keeps the network with its faults; a schedule over a broken link is refused."""
    for topology in ("4x4!5:-1,10", "mesh:2x3", ONE_WAY):
        schedule = plan(topology, "allgather")
        schedule.save(tmp_path / "plan.json", force=True)
        loaded = tf.load(tmp_path / "plan.json")
        assert loaded.topology == schedule.topology
        assert loaded.digest == schedule.digest
    whole = tf.plan("4x4", "broadcast", algorithm="spanning-tree")
    for broken in ("0:+0", "0:+0:out"):
        wrong = replace(whole, topology=parse_topology(f"4x4!{broken}"))
        with pytest.raises(tf.ScheduleError, match=r"node 0 \(0,0\) port \+0 has no link"):
            tf.check(wrong)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_faults_at_random(seed):
    """On tori with random faults an all-gather takes at most 3 % or one step more than the cut."""
    random = np.random.default_rng(seed)
    sides = random.integers(3, 9, 2)
    faults = [f"{node}:{port}" for node, port in random.integers(0, (sides.prod(), 4), (2, 2))]
    faults += [str(random.integers(sides.prod()))] * (seed % 2)
    topology = parse_topology(f"{sides[0]}x{sides[1]}!{','.join(faults)}")
    schedule = plan(topology, "allgather")
    least = cut_of(topology, schedule.collective).message_times * schedule.chunks
    assert schedule.round_count <= max(1.03 * least, ceil(least) + 1)


@pytest.mark.parametrize("topology", ["mesh:2x3", "3x3!0:+0", ONE_WAY])
def test_an_algorithm_of_a_user_says_that_it_plans_on_any_network(topology):
    """An algorithm of a user is used on any network only if it has `any_network=True`.

    The reason for a refusal names this argument.
    """

    def plan(topology, collective, options):
        return replace(network_plan.plan(topology, collective, options), algorithm="mine")

    mine = tf.Algorithm(
        "mine", "a test", "any network", ("allgather",), (), lambda *given: None, plan
    )
    options = Options()
    collective = tf.Collective("allgather")
    network = topology if isinstance(topology, Graph) else parse_topology(topology)
    reason = mine.why_not(network, collective, options)
    assert reason
    assert reason.endswith("its Algorithm lacks any_network=True")
    other = tf.algorithms.find_algorithm("matching").why_not(network, collective, options)
    assert other
    assert "any_network" not in other
    able = replace(mine, any_network=True)
    assert able.why_not(network, collective, options) is None
    assert able(network, collective).algorithm == "mine"
