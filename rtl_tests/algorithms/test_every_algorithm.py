"""Common requirements of all algorithms in the catalogue, for each of their collectives."""

import pytest
from helpers import few

from torusfabric.algorithms import CATALOGUE, Options, find_algorithm
from torusfabric.algorithms.catalogue import BUILT_IN
from torusfabric.analysis.bounds import bound
from torusfabric.analysis.check import check
from torusfabric.collective import parse_collective
from torusfabric.errors import InputError
from torusfabric.schedule.file import load, save
from torusfabric.topology import parse_topology

#: Small topologies. Each algorithm serves at least one.
TOPOLOGIES = ["2", "5", "2x3", "4x4", "3x5", "5x5", "6x6", "7x7x7", "3x3x3", "arrowhead:0",
              "arrowhead:2", "mesh:3x4", "3x3!0:+0", "4x4!5:-1,10", "3x3!0:+0=3"]  # fmt: skip

#: Large topologies and the algorithms that run on them; other algorithms would take too long.
LARGE = {"7x7x7": ("lee-code",)}

#: Cases by turns: the first collective of each algorithm, then the second of each, and so on.
CASES = sorted(
    ((algorithm, kind) for algorithm in BUILT_IN for kind in algorithm.collectives),
    key=lambda case: case[0].collectives.index(case[1]),
)


@pytest.mark.parametrize(
    "options", [{"ports": 0}, {"chunks": 0}, {"latency": 0}, {"trees": 0}, {"packets": 0}]
)
def test_numbers_of_nothing_are_refused_before_an_algorithm_is_asked(options):
    """Options of 0 are refused before an algorithm sees them."""
    (name,) = options
    message = rf"^{name.capitalize()} must be a positive integer, not 0$"
    with pytest.raises(InputError, match=message):
        Options(**options)


def collective_on(kind, topology, groups=""):
    """Return a collective whose root, if it has one, is the last node, or the last of a group."""
    collective = parse_collective(kind)
    last = topology.nodes - 1 if groups == "" else 2
    name = kind + groups
    return parse_collective(name, root=last) if collective.rooted else parse_collective(name)


def selections(algorithm, kind):
    """Yield the topologies that an algorithm serves, with the collective on each."""
    for name in TOPOLOGIES:
        topology = parse_topology(name)
        groups = "@{0,1,2}" * (algorithm.irregular and topology.nodes > 2)
        collective = collective_on(kind, topology, groups)
        # a file of sums around cycles lists each contribution, and would be long
        if name == "6x6" and algorithm.name == "hamiltonian" and collective.reducing:
            continue
        if algorithm.name in LARGE.get(name, (algorithm.name,)) and (
            algorithm.why_not(topology, collective, Options()) is None
        ):
            yield topology, collective


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    few(2 * len(BUILT_IN), CASES),
    ids=[f"{algorithm.name}-{kind}" for algorithm, kind in CASES],
)
def test_every_algorithm(algorithm, kind, tmp_path):
    """A schedule is correct, within its bound, reproducible, and saved completely."""
    served = 0
    for topology, collective in selections(algorithm, kind):
        schedule = algorithm(topology, collective)
        traffic = check(schedule)
        assert schedule.round_count >= bound(schedule, traffic), topology
        assert schedule.algorithm == algorithm.name
        assert (schedule.topology, schedule.collective) == (topology, collective)
        assert schedule.ports <= topology.ports
        assert algorithm(topology, collective).digest == schedule.digest, topology
        save(schedule, tmp_path / "plan.json.gz")
        assert load(tmp_path / "plan.json.gz").round_count == schedule.round_count, topology
        served += 1
    assert served


@pytest.mark.parametrize(
    ("name", "topology", "kind"),
    [("bufferless", "6x7", "allgather"), ("max-flow", "6x7", "broadcast"),
     ("matching", "16x2x2", "allgather"), ("matching", "4x4x4", "alltoall")],
)  # fmt: skip
def test_another_seed_is_another_plan(name, topology, kind):
    """The same seed gives the same plan, and another seed can give another."""
    network = parse_topology(topology)
    collective = collective_on(kind, network)
    digests = [
        find_algorithm(name)(network, collective, Options(seed=k)).digest for k in (1, 1, 2, 3, 4)
    ]
    assert digests[0] == digests[1]
    assert len({*digests}) > 1


@pytest.mark.parametrize("algorithm", [*CATALOGUE], ids=lambda algorithm: algorithm.name)
def test_options_that_an_algorithm_does_not_know_are_refused(algorithm):
    """An unknown option is refused in words that name the option."""
    topology = parse_topology("4x4")
    collective = collective_on(algorithm.collectives[0], topology)
    for options in (Options(trees=1), Options(packets=2), Options(large=True)):
        (name,) = options.given()
        if name not in algorithm.options:
            option = f"--{name.replace('_', '-')}"
            with pytest.raises(
                InputError, match=f"^Algorithm {algorithm.name} has no option {option}; "
            ):
                algorithm(topology, collective, options)
