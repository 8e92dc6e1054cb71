"""What is asserted of routers, operators and links, by induction, at their real width.

The program says which source feeds an out-port in a row; the select bits that stand for a source
are the fabric's own affair. So the bits are taken from the plan of the fabric as a claim, and it is
asserted that with these bits exactly this source passes, for all words, at all times. That a run
gives the bits that the program's rows ask for is proved apart, of the whole (`runs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ..rtl.operator_unit import OperatorUnit, operator_pair
from ..rtl.placement import combiner_name
from .model import Model, earlier
from .units import registers_of_links

if TYPE_CHECKING:
    from ..collective import Operator
    from ..rtl import Fabric
    from ..rtl.placement import RouterPlan
    from ..rtl.router import Crossbar, Output
    from ..verilog.design import Design
    from .solver import Harness

__all__ = ["link_harnesses", "operator_modules", "router_harnesses"]

#: What all claims come to.
SAYS = (
    "for all words and settings, at all times, each output holds the source, or the combination, "
    "that its select bits stand for"
)

#: Sums of which all is proved at once.
MOST_SUMS = 20

#: Cycles from the select bits at the inputs to what they select at the outputs.
LATENCY = 2


@dataclass(frozen=True)
class Words:
    """The words among which a crossbar selects.

    Parameters
    ----------
    delayed : tuple of int
        The in-ports with a register behind them.
    injections : int
        Words of injection ports, results before them included.
    made : bool
        Of operators, whether they give away what they make before it is in a register.
    """

    ports: int
    delayed: tuple[int, ...]
    injections: int
    width: int
    made: bool = False


def router_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """What is proved of routers, and of operators behind in-ports and inside endpoints."""
    program, width, placement = fabric.program, fabric.width, fabric.placement
    sources, ports = program.loop.sources, program.ports

    model, unit = partial(Model, design, resets=False), fabric.operator_unit
    for number, router in enumerate(placement.routers):
        found = model(f"router_{number}")
        _claim_router(found, router, Words(ports, sources.delayed, router.word_count, width), unit)
        yield found.harness(SAYS)
    for number, plan in enumerate(placement.operands if sources.results else ()):
        assert unit is not None
        name = combiner_name(placement, number)
        words = Words(ports, sources.delayed_results, plan.word_count, width, sources.made)
        for some in _together(plan.crossbar, unit):
            found = model(name)
            _claim_combiner(found, plan.crossbar, unit, words, some)
            which = "" if len(some) == ports else f" at in-port {', '.join(map(str, some))}"
            yield replace(found.harness(SAYS), name=name + which)
    for module in operator_modules(fabric, design):
        found = model(module.removeprefix(fabric.prefix))
        assert unit is not None
        _claim_unit(found, unit, width)
        yield found.harness(SAYS)


def operator_modules(fabric: Fabric, design: Design) -> list[str]:
    """The module of operators inside endpoints, if there is one."""
    if fabric.operator_unit is None:
        return []
    name = fabric.prefix + operator_pair(fabric.operator_unit, fabric.width).name
    return [name] if name in design.modules else []


def _claim_router(
    model: Model, router: RouterPlan, words: Words, unit: OperatorUnit | None
) -> None:
    """Every out-port passes what the select bits stand for, as the plan of the router has it.

    The word that changes nothing is the last source, and may depend on the operator.
    """
    model.input("enable", 1)
    model.input("rx", words.ports * words.width)
    if words.injections:
        model.input("inject", words.injections * words.width)
    sources = [model.word("rx", port, words.width, ago=1) for port in range(words.ports)]
    # A second register holds the word of the cycle before, while words advance.
    sources += [model.word("rx", port, words.width, ago=2) for port in words.delayed]
    sources += [model.word("inject", k, words.width, ago=1) for k in range(words.injections)]
    known = [{"": source} for source in sources]
    if any(len(sources) in output.sources for output in router.crossbar.outputs):
        assert unit is not None
        known.append(_neutral(model, unit, words.width))
    model.wire("held", earlier(_early(model, router), LATENCY), max(len(router.bits), 1))
    advancing = earlier("enable", 2)
    later = {words.ports + k for k in range(len(words.delayed))}
    for port, output in enumerate(router.crossbar.outputs):
        shown = model.word("tx", port, words.width)
        stays = f"{advancing} || {shown} == {earlier(shown)}"
        model.claim(f"tx_{port}_waits_while_not_enabled", stays)
        for number, source in enumerate(output.sources):
            # The second register holds that word if words advanced the cycle before, too.
            before = [earlier("enable", 3)] if source in later else []
            for code, word in known[source].items():
                conditions = [advancing, *before, *_selected(output, number), code]
                of_code = f"_of_{code.split()[-1]}" if code else ""
                model.claim(
                    f"tx_{port}_passes_source_{source}{of_code}",
                    f"!({' && '.join(filter(None, conditions))}) || {shown} == {word}",
                )


def _neutral(model: Model, unit: OperatorUnit, width: int) -> dict[str, str]:
    """The word that changes nothing, by what control bits of the operator are if that matters."""
    words = [f"{width}'d{operator.identity(width)}" for operator in unit.operators]
    bits = unit.identity_bits(width)
    if not bits:
        return {"": words[0]}
    model.input("operator_code", bits)
    chosen = earlier("operator_code", LATENCY)
    codes = [f"{chosen} == {code}" for code in unit.codes]
    return dict(zip(codes, words, strict=True))


def _early(model: Model, router: RouterPlan) -> str:
    """What the select registers will hold: bits of the sequencer, or of the table, or of either."""
    if router.column_count:
        model.input("select", router.column_count)
    if router.row_bits:
        model.input("setting", router.row_bits)
    bits = []
    for bit in router.bits:
        terms = [] if bit.column is None else [f"select[{bit.column}]"]
        terms += [] if bit.start is None else [f"setting[{bit.start}]"]
        bits.append("(" + " | ".join(terms) + ")")
    return "{" + ", ".join(reversed(bits)) + "}" if bits else "1'b0"


def _selected(output: Output, number: int) -> list[str]:
    """That select registers hold the bits of a source."""
    return [f"held[{k}] == 1'b{bit}"
            for k, bit in zip(output.bits, output.code(number), strict=True)]  # fmt: skip


def _together(crossbar: Crossbar, unit: OperatorUnit) -> Iterator[range]:
    """In-ports of which all is proved at once: of many sums the solver takes ever longer."""
    sums = max(len(output.sources) for output in crossbar.outputs) * len(unit.operators)
    ports, each = len(crossbar.outputs), max(MOST_SUMS // max(sums, 1), 1)
    yield from (range(first, min(first + each, ports)) for first in range(0, ports, each))


def _claim_combiner(
    model: Model, crossbar: Crossbar, unit: OperatorUnit, words: Words, ports: Sequence[int]
) -> None:
    """Operators at some in-ports make of each operand what they should; the first of these, too,
    that all results stay as long as they should. Of words, in-ports are of results.
    """
    width = words.width
    model.input("enable", 1)
    model.input("rx", words.ports * width)
    if words.injections:
        model.input("inject", words.injections * width)
    if crossbar.rom.shape[1]:
        model.input("select", crossbar.rom.shape[1])
        model.wire("held", earlier("select", LATENCY), crossbar.rom.shape[1])
    if unit.bits:
        model.input("operator_code", unit.bits)
    for code, operator in zip(unit.codes, unit.operators, strict=True):
        _add_results(model, crossbar, words, operator, code if unit.bits else None, ports)
    if 0 not in ports:
        return
    advancing = earlier("enable", 2)
    for port in range(words.ports + len(words.delayed)):
        shown = model.word("result", port, width)
        stays = f"{advancing} || {shown} == {earlier(shown)}"
        model.claim(f"result_{port}_waits_while_not_enabled", stays)
    for port in range(words.ports if words.made else 0):
        shown, before = model.word("result", port, width), model.word("made", port, width, ago=1)
        model.claim(f"result_{port}_is_what_was_made", f"!{advancing} || {shown} == {before}")
    for port, of in enumerate(words.delayed, words.ports):
        shown, before = model.word("result", port, width), model.word("result", of, width, ago=1)
        model.claim(
            f"result_{port}_is_that_of_the_cycle_before", f"!{advancing} || {shown} == {before}"
        )


def _add_results(
    model: Model, crossbar: Crossbar, words: Words, operator: Operator, code: int | None,
    ports: Sequence[int],
) -> None:  # fmt: skip
    """Assert what an operator makes of each operand."""
    width, results = words.width, words.ports + len(words.delayed)
    operands = [model.word("result", k, width, ago=1) for k in range(results)]
    operands += [""] * (words.ports if words.made else 0)  # with these nothing is combined
    operands += [model.word("inject", k, width, ago=1) for k in range(words.injections)]
    operands.append(f"{width}'d{operator.identity(width)}")
    assert operator.proof is not None  # `prove` sees to that
    conditions = [earlier("enable", 2)]
    if code is not None:
        conditions.append(f"{earlier('operator_code', LATENCY)} == {code}")
    for port in ports:
        output, arriving = crossbar.outputs[port], model.word("rx", port, width, ago=1)
        for number, source in enumerate(output.sources):
            chosen = " && ".join(conditions + _selected(output, number))
            wanted = operator.proof(arriving, operands[source], width)
            model.claim(
                f"result_{port}_is_{operator.label}_with_{source}",
                f"!({chosen}) || {model.word('result', port, width)} == {wanted}",
            )


def _claim_unit(model: Model, unit: OperatorUnit, width: int) -> None:
    """Every operator makes of two words what it should."""
    if unit.bits:
        model.input("code", unit.bits)
    for code, operator in zip(unit.codes, unit.operators, strict=True):
        assert operator.proof is not None
        wanted = operator.proof("a", "b", width)
        chosen = f"code == {code}" if unit.bits else "1'b1"
        model.claim(f"result_is_{operator.label}", f"!({chosen}) || result == {wanted}")


def link_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """What is proved of the modules of links, at their real width."""
    for name, registers in registers_of_links(fabric).items():
        model = Model(design, name, resets=False, shows=("at",))
        model.input("sent", fabric.width)
        if model.has("at"):
            model.claim("at_is_within_the_line", f"at < {registers}", ago=1)
        # A reset moves a delay line while words are on the way.
        resets = [earlier("rst", k) for k in range(registers + 1) if model.has("rst")]
        right = " || ".join([*resets, f"arrived == {earlier('sent', registers)}"])
        model.claim("words_come_out_in_time", right, ago=registers + 1)
        yield model.harness(
            f"for all words, at all times, a word comes out in cycle {registers} after it went in"
        )
