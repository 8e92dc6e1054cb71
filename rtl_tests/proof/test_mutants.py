"""Mutants of the hardware are noticed by simulation or proof; see `sim/hardware_mutants.py`.

All kinds of fabrics: ``python -m pytest rtl_tests/proof/test_mutants.py -m long``.
"""

import hardware_mutants as mutants
import pytest
from helpers import few
from netlist_mutants import INVERTED, KINDS, OPERAND, SWAPPED, mutations, with_netlist

import torusfabric as tf
from torusfabric.proof import prove
from torusfabric.toolchain import cxx, tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")

EVERY = [*mutants.FABRICS, *mutants.OTHERS]

#: Number of mutants of each kind of fabric in the long sweep, and how many of them may be neither
#: noticed nor equivalent, because they change logic that no run reaches.
COUNT, UNREACHED = 18, 2


@pytest.mark.parametrize("number", range(len(KINDS)), ids=KINDS)
def test_a_mutant_of_each_kind_is_noticed(number):
    # A mutant of seed 1, a write address that comes a cycle late, changes no run.
    found = mutants.carry_out("tables", len(KINDS), 3, number)
    assert found.kind == KINDS[number]
    assert found.noticed or found.equivalent


@pytest.mark.long
@pytest.mark.parametrize("kind", EVERY)
def test_mutants_are_noticed(kind):
    numbers = range(len(mutants.mutants(kind, COUNT, 2)))
    found = [mutants.carry_out(kind, COUNT, 2, number) for number in numbers]
    assert not [each for each in found if "crash" in each.proof]
    assert len(mutants.survivors(found)) <= UNREACHED, mutants.survivors(found)


@pytest.mark.long
@pytest.mark.parametrize("kind", EVERY)
def test_without_a_mutation_all_is_proved(kind):
    assert mutants.seen_by_proof(kind, mutants.design_of(mutants.simulated(kind)[0])) == ""


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
@pytest.mark.parametrize("number", few(2, [*range(12)]))
def test_engines_agree_about_mutants(number):
    """Amaranth's engine and the compiled engine notice the same mutants."""
    (fabric,) = mutants.simulated("tables")
    mutant = with_netlist(fabric, mutants.mutants("tables", 12, 3)[number].change)
    found = [
        mutants.noticed(
            lambda name=name: "" if tf.simulate(mutant, engine=name).passed else "wrong"
        )
        for name in ("amaranth", "compiled")
    ]
    assert bool(found[0]) == bool(found[1])


def first(kind, mutation, place):
    """Return the design of a fabric with the first mutation of a kind at a location."""
    (fabric,) = mutants.simulated(kind)
    found = next(each for each in mutations(fabric.netlist)
                 if each.kind == mutation and each.place.startswith(place))  # fmt: skip
    return mutants.design_of(with_netlist(fabric, found.change))


@pytest.mark.parametrize(
    ("mutation", "place", "module", "signal"),
    [
        (SWAPPED, "endpoint_at_{}, number 2, rx", "wiring", "endpoint_at_2.rx"),
        (OPERAND, "read_merge_1_{}, number 0, data", "wiring", "read_merge_0_0"),
        (SWAPPED, "router_0, rtl/core/router.py", "router_0", "tx"),
        (INVERTED, "endpoint_0", "whole runs", "received word"),
    ],
)
def test_what_is_refuted_is_named(mutation, place, module, signal):
    wrong = prove(
        mutants.hardware("tables"), design=first("tables", mutation, place), cache=Cache()
    )
    assert module in wrong.counterexample.module + wrong.counterexample.signal
    assert signal in wrong.counterexample.signal
