"""Proof of the CRC-32 of packets: transmitters send it, and receivers check it, as defined.

The hardware computes the CRC one word at a time. The definition is a register of 32 bits, shifted
once for each bit of a word, low bits first. A CRC is linear: with fixed control inputs, each bit of
the next CRC is an XOR of bits of the old CRC, bits of the word, and possibly a constant 1. Such an
XOR is a *parity form*. The parity form of each bit is derived from the gates and compared with the
definition. The solver proves the rest: the order of words and CRC, and the reports of a receiver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from ....proof.gates import Bit, GateModule, cone_of_influence
from ....proof.model import HarnessBuilder
from ....proof.report import make_refutation
from ....rtl.crc import CRC_BITS, INITIAL_CRC, POLYNOMIAL
from ..hardware.links import WordType

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..hardware import LinkPlan

__all__ = ["check_received_crc", "check_sent_crc", "received_crc_harness", "sent_crc_harness"]

#: XOR of bits, as a mask with one bit for each operand, and bit 0 for a constant 1. None stands for
#: any function that is no XOR.
ParityForm: TypeAlias = int | None


def check_sent_crc(module: GateModule, width: int) -> int:
    """Check the CRC that a transmitter computes and sends; return the number of compared bits.

    Parameters
    ----------
    module : GateModule
        The transmitter, as gates.
    width : int
        Bits of a word on the link.
    """
    count, crc = 0, _crc_register(module)
    for begins, running in product((0, 1), repeat=2):
        chosen = {"begins": begins, "running": running, "checking": 0}
        word = _next_forms(module, chosen, "tx_word")
        count += _compare_next_value(
            module, chosen, "crc", _crc_after_word(crc, word, anew=bool(begins))
        )
        chosen["checking"] = 1
        count += _compare_next_value(module, chosen, "crc", _shift_right(crc, width))
        count += _compare_next_value(module, chosen, "tx_word", _shift_right(crc, 0, width))
    return count


def check_received_crc(module: GateModule, width: int) -> int:
    """Check the CRC that a receiver computes; return the number of compared bits.

    Parameters
    ----------
    module : GateModule
        The receiver, as gates.
    width : int
        Bits of a word on the link.
    """
    count, crc, word = 0, _crc_register(module), _current_forms(module, "received")
    for fresh, frame, before in product((0, 1), range(4), range(4)):
        chosen = {"fresh": fresh, "frame": frame, "frame_before": before}
        wanted: Sequence[ParityForm] = crc
        if fresh and frame == WordType.CHECK:
            wanted = _shift_right(crc, width)
        elif fresh:
            wanted = _crc_after_word(crc, word, anew=frame != before)
        count += _compare_next_value(module, chosen, "crc", wanted)
    return count


def _crc_register(module: GateModule) -> Sequence[ParityForm]:
    """Return the bits of the CRC register of a transmitter or receiver.

    `module` is the transmitter or the receiver, as gates. If bits are missing, because Yosys
    removes a register on which nothing depends, the claim about the CRC fails: `Refuted` is raised.
    """
    crc = _current_forms(module, "crc")
    if len(crc) != CRC_BITS:
        raise make_refutation(module.name, "crc", f"Sum must be a register of {CRC_BITS} bits")
    return crc


def _crc_after_word(
    crc: Sequence[ParityForm], word: Sequence[ParityForm], *, anew: bool
) -> list[ParityForm]:
    """Return the CRC that follows a word by the definition, bit by bit.

    Each bit is a parity form: an XOR of bits of the old CRC and of the word. `crc` is the CRC
    before the word; with `anew`, it is all ones instead.
    """
    state: list[ParityForm] = [INITIAL_CRC >> k & 1 for k in range(CRC_BITS)] if anew else [*crc]
    for bit in word:
        fed = _xor(state[0], bit)
        state = [*state[1:], 0]
        state = [_xor(x, fed) if POLYNOMIAL >> k & 1 else x for k, x in enumerate(state)]
    return state


def _shift_right(crc: Sequence[ParityForm], places: int, width: int = CRC_BITS) -> list[ParityForm]:
    """Return the low `width` bits of a CRC that is shifted right by `places` bits.

    Zeros are shifted in at the upper end. Each bit of `crc`, the lowest first, is a parity form: an
    XOR of some variables.
    """
    return ([*crc[places:]] + [0] * max(places, width))[:width]


def _xor(a: ParityForm, b: ParityForm) -> ParityForm:
    return None if a is None or b is None else a ^ b


def _and(a: ParityForm, b: ParityForm) -> ParityForm:
    """Return the AND of two parity forms, each an XOR of variables; None if it is no such form.

    The AND is a parity form if `a` or `b` is constant, or if both are equal.
    """
    if 0 in (a, b):
        return 0
    return b if a in (1, b) else a if b == 1 else None


def _signal_bits(module: GateModule, name: str) -> list[Bit]:
    """Return the bits of the register or port `name` of a module, the lowest first."""
    found = module.inputs.get(name) or module.outputs.get(name)
    if found:
        return found
    named = {text: bit for bit, text in module.names.items()}
    bits = [named[name]] if name in named else []
    while (bit := named.get(f"{name}[{len(bits)}]")) is not None:
        bits.append(bit)
    return [*bits]


def _current_forms(module: GateModule, name: str) -> list[ParityForm]:
    """Return the present bits of the register or port `name`, as variables of parity forms.

    A parity form is an XOR of variables; here each has one variable. `module` has the register or
    port.
    """
    return [2 << int(bit) for bit in _signal_bits(module, name)]


def _next_forms(module: GateModule, chosen: Mapping[str, int], name: str) -> list[ParityForm]:
    """Return the bits of the register `name` in the next cycle, as functions of the present bits.

    Each is a parity form, an XOR of present bits, or None if it is no such function. The inputs and
    registers in `chosen` have fixed values.
    """
    forms: dict[Bit, ParityForm] = {"0": 0, "1": 1, "x": None}
    for port, value in ({"rst": 0} | dict(chosen)).items():
        forms |= {bit: value >> k & 1 for k, bit in enumerate(_signal_bits(module, port))}
    wanted = [module.flop_of[bit] for bit in _signal_bits(module, name)]
    live = cone_of_influence(module, wanted, through_flops=False).bits
    for bit in TopologicalSorter({bit: module.operands_of(bit) for bit in live}).static_order():
        if bit not in forms:
            gate = module.gate_of.get(bit)
            below = [forms[each] for each in module.operands_of(bit)]
            forms[bit] = _gate_output(gate.kind, *below) if gate else 2 << int(bit)
    return [forms[bit] for bit in wanted]


def _gate_output(kind: str, a: ParityForm, b: ParityForm, s: ParityForm) -> ParityForm:
    """Return the output of a gate as a parity form (an XOR of variables); None if it is none.

    `kind` is NOT, XOR, AND, OR or a multiplexer. The parity forms of its inputs are `a`, `b` and,
    for a multiplexer, the selector `s`, which is 1 to select `b`.
    """
    match kind:
        case "NOT":
            return _xor(a, 1)
        case "XOR":
            return _xor(a, b)
        case "AND":
            return _and(a, b)
        case "OR":
            return _xor(_and(_xor(a, 1), _xor(b, 1)), 1)
    return a if a == b or s == 0 else b if s == 1 else None


def _compare_next_value(
    module: GateModule, chosen: Mapping[str, int], name: str, wanted: Sequence[ParityForm]
) -> int:
    """Check that a register has the expected bits in the next cycle; return the number of bits.

    `name` is the name of a register in `module`. `chosen` has the fixed values of inputs and
    registers. Each bit in `wanted` is a parity form: an XOR of present bits of registers and
    inputs.
    """
    found = _next_forms(module, chosen, name)
    if len(found) != len(wanted):
        raise make_refutation(
            module.name, "crc", f"Sum must have {len(wanted)} bits, not {len(found)}"
        )
    for k, (form, right) in enumerate(zip(found, wanted, strict=True)):
        if form is None or form != right:
            message = f"Bit {k} of the sum of {module.name} must be that of CRC-32 where {chosen}"
            raise make_refutation(module.name, "crc", message)
    return len(found)


def sent_crc_harness(plan: LinkPlan, design: Design) -> Harness:
    """Return the proof that a transmitter sends the words of a packet, and then their CRC.

    A packet is here the words of one run, or of one message of the board control. `plan` has the
    widths of words and messages; `design` is the emitted Verilog.
    """
    model = HarnessBuilder(design, "transmitter", resets=False)
    width = plan.width
    low, bits, told = min(width, CRC_BITS), plan.message_words * width, "{message, link}"
    rest = f"($past(begins) ? {bits}'($past({told})) : $past(rest))"
    frame = (
        f"($past(checking) ? {int(WordType.CHECK)} : $past(running) ? {int(WordType.RUN)} : "
        f"{int(WordType.MESSAGE)})"
    )
    model.claim_all({
        "sends_words_and_then_their_sum":
            f"tx_word == ($past(checking) ? $past(crc[{low - 1}:0]) : $past(word))",
        "sends_the_word_of_the_run": "!running || word == sent",
        "keeps_the_rest_of_a_message": f"rest == {rest} >> {width}",
        "sends_the_words_of_a_message":
            f"running || word == {width}'(begins ? {bits}'({told}) : rest)",
        "says_what_it_sends": f"$past(rst) || tx_frame == {frame}",
    })  # fmt: skip
    return model.make_harness("the words of a run or a message are sent, followed by their CRC")


def received_crc_harness(plan: LinkPlan, latency: int, design: Design) -> Harness:
    """Return the proof that a receiver reports only packets with a correct CRC.

    A packet is here the words of one run, or of one message of the board control. `plan` has the
    widths of words and messages, and `design` is the emitted Verilog. `latency` is the latency of
    the link, in cycles; links of equal latency have one module as their receiver.
    """
    model, width = HarnessBuilder(design, f"receiver_{latency}"), plan.width
    low = min(width, CRC_BITS)
    check = f"(frame == {int(WordType.CHECK)})"
    bad = (f"$past((was_due && frame != {int(WordType.RUN)}) || "
           f"(was_check_due && (!{check} || wrong)))")  # fmt: skip
    unequal = f"received{f'[{low - 1}:0]' if width > 1 else ''} != crc[{low - 1}:0]"
    bits, peer = plan.message_words * width, model.port_width("peer")
    if not model.has_name("held"):  # Yosys merges `held` and `said` if they have equal widths
        model.add_wire("held", "said", bits)
    model.claim_all({
        "holds_the_words_of_a_message":
            f"!steady || held == ($past(fresh && !{check}) ? "
            f"{bits}'({{$past(received), $past(held)}} >> {width}) : $past(held))",
        "says_what_it_holds": f"said == held[{plan.message_bits - 1}:0]",
        "sees_that_a_word_of_it_is_another": f"wrong == (was_wrong || {unequal})",
        "remembers_that_one_was": "!(steady && $past(fresh)) || was_wrong == "
                                  f"$past({check} && wrong)",
        "hears_nothing_with_another_sum":
            f"!(heard || strange) || ({check} && !wrong && of_message && checks_left == 0)",
        "hears_when_the_last_word_is_taken": "!steady || !(heard || strange) || $past(take)",
        "hears_its_peer_alone": f"!(heard && strange) && (!heard || said[{peer - 1}:0] == peer)",
        "knows_what_was_due":
            "!steady || (was_due == $past(due) && was_check_due == $past(check_due))",
        "says_what_is_lost": "!steady || lost == "
                             f"($past(frozen) && ($past(lost || lost_now) || {bad}))",
    })  # fmt: skip
    says = "a packet is accepted only if its CRC is that of its words; otherwise it counts as lost"
    return replace(model.make_harness(says), name=f"sums of receiver_{latency}")
