"""What is proved of what goes over a link: words, and behind them their CRC-32.

That is made a word at a time. A CRC is linear. So with what is chosen fixed, each bit of a sum is
the exclusive or of bits of the sum before and of the word, and perhaps a one; which these are is
worked out gate by gate, and compared with the definition: a register of 32 bits that is shifted
once for each bit of a word, the low bits first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from ....proof.gates import Bit, GateModule, cone
from ....proof.model import Model
from ....proof.report import refuted
from ....rtl.crc import CRC_BITS, ONES, POLYNOMIAL
from ..hardware.links import Frame

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..hardware import LinkPlan

__all__ = ["check_received_sums", "check_sent_sums", "received_sum_harness", "sent_sum_harness"]

#: Bits whose exclusive or something is, a bit set for each, and bit 0 for a one; None if it is
#: something else.
Form: TypeAlias = int | None


def check_sent_sums(module: GateModule, width: int) -> int:
    """Check, and count, bits of the sums that a transmitter makes, and of what it sends."""
    count, crc = 0, _sum_of(module)
    for begins, running in product((0, 1), repeat=2):
        chosen = {"begins": begins, "running": running, "checking": 0}
        word = _next(module, chosen, "tx_word")
        count += _compare(module, chosen, "crc", _serial(crc, word, anew=bool(begins)))
        chosen["checking"] = 1
        count += _compare(module, chosen, "crc", _shifted(crc, width))
        count += _compare(module, chosen, "tx_word", _shifted(crc, 0, width))
    return count


def check_received_sums(module: GateModule, width: int) -> int:
    """Check, and count, bits of the sums that a receiver makes of what it has taken."""
    count, crc, word = 0, _sum_of(module), _now(module, "received")
    for fresh, frame, before in product((0, 1), range(4), range(4)):
        chosen = {"fresh": fresh, "frame": frame, "frame_before": before}
        wanted: Sequence[Form] = crc
        if fresh and frame == Frame.CHECK:
            wanted = _shifted(crc, width)
        elif fresh:
            wanted = _serial(crc, word, anew=frame != before)
        count += _compare(module, chosen, "crc", wanted)
    return count


def _sum_of(module: GateModule) -> Sequence[Form]:
    """The register of a sum; of one that nothing depends on, Yosys leaves nothing."""
    crc = _now(module, "crc")
    if len(crc) != CRC_BITS:
        raise refuted(module.name, "crc", f"Sum must be a register of {CRC_BITS} bits")
    return crc


def _serial(crc: Sequence[Form], word: Sequence[Form], *, anew: bool) -> list[Form]:
    """The sum after a word, bit by bit; of the word alone if a sum begins anew."""
    state: list[Form] = [ONES >> k & 1 for k in range(CRC_BITS)] if anew else [*crc]
    for bit in word:
        fed = _xor(state[0], bit)
        state = [*state[1:], 0]
        state = [_xor(x, fed) if POLYNOMIAL >> k & 1 else x for k, x in enumerate(state)]
    return state


def _shifted(crc: Sequence[Form], places: int, width: int = CRC_BITS) -> list[Form]:
    """What is left of a sum once some of its bits have been sent, and zeros above."""
    return ([*crc[places:]] + [0] * max(places, width))[:width]


def _xor(a: Form, b: Form) -> Form:
    return None if a is None or b is None else a ^ b


def _and(a: Form, b: Form) -> Form:
    """A product of two forms; it is none unless one of them is constant, or both are the same."""
    if 0 in (a, b):
        return 0
    return b if a in (1, b) else a if b == 1 else None


def _bits(module: GateModule, name: str) -> list[Bit]:
    """A register, or a port, by its name."""
    found = module.inputs.get(name) or module.outputs.get(name)
    if found:
        return found
    named = {text: bit for bit, text in module.names.items()}
    bits = [named[name]] if name in named else []
    while (bit := named.get(f"{name}[{len(bits)}]")) is not None:
        bits.append(bit)
    return [*bits]


def _now(module: GateModule, name: str) -> list[Form]:
    """The bits of a register, each as itself."""
    return [2 << int(bit) for bit in _bits(module, name)]


def _next(module: GateModule, chosen: Mapping[str, int], name: str) -> list[Form]:
    """What the bits of a register become, where what is chosen is fixed."""
    forms: dict[Bit, Form] = {"0": 0, "1": 1, "x": None}
    for port, value in ({"rst": 0} | dict(chosen)).items():
        forms |= {bit: value >> k & 1 for k, bit in enumerate(_bits(module, port))}
    wanted = [module.flop_of[bit] for bit in _bits(module, name)]
    live = cone(module, wanted, through_flops=False).bits
    for bit in TopologicalSorter({bit: module.before(bit) for bit in live}).static_order():
        if bit not in forms:
            gate = module.gate_of.get(bit)
            below = [forms[each] for each in module.before(bit)]
            forms[bit] = _made(gate.kind, *below) if gate else 2 << int(bit)
    return [forms[bit] for bit in wanted]


def _made(kind: str, a: Form, b: Form, s: Form) -> Form:
    """What a gate makes of forms."""
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


def _compare(
    module: GateModule, chosen: Mapping[str, int], name: str, wanted: Sequence[Form]
) -> int:
    """How many bits of what a register becomes were compared, all of which are as wanted."""
    found = _next(module, chosen, name)
    if len(found) != len(wanted):
        raise refuted(module.name, "crc", f"Sum must have {len(wanted)} bits, not {len(found)}")
    for k, (form, right) in enumerate(zip(found, wanted, strict=True)):
        if form is None or form != right:
            message = f"Bit {k} of the sum of {module.name} must be that of CRC-32 where {chosen}"
            raise refuted(module.name, "crc", message)
    return len(found)


def sent_sum_harness(plan: LinkPlan, design: Design) -> Harness:
    """What a transmitter sends: the words, and behind them their CRC-32."""
    model = Model(design, "transmitter", resets=False)
    width = plan.width
    low, bits, told = min(width, CRC_BITS), plan.message_words * width, "{message, link}"
    rest = f"($past(begins) ? {bits}'($past({told})) : $past(rest))"
    frame = (
        f"($past(checking) ? {int(Frame.CHECK)} : $past(running) ? {int(Frame.RUN)} : "
        f"{int(Frame.MESSAGE)})"
    )
    model.claims({
        "sends_words_and_then_their_sum":
            f"tx_word == ($past(checking) ? $past(crc[{low - 1}:0]) : $past(word))",
        "sends_the_word_of_the_run": "!running || word == sent",
        "keeps_the_rest_of_a_message": f"rest == {rest} >> {width}",
        "sends_the_words_of_a_message":
            f"running || word == {width}'(begins ? {bits}'({told}) : rest)",
        "says_what_it_sends": f"$past(rst) || tx_frame == {frame}",
    })  # fmt: skip
    return model.harness("words of a run, or of a message, go out, and behind them their sum")


def received_sum_harness(plan: LinkPlan, latency: int, design: Design) -> Harness:
    """What a receiver makes of what has been sent: it notices where the sum is another."""
    model, width = Model(design, f"receiver_{latency}"), plan.width
    low = min(width, CRC_BITS)
    check = f"(frame == {int(Frame.CHECK)})"
    bad = (f"$past((was_due && frame != {int(Frame.RUN)}) || "
           f"(was_check_due && (!{check} || wrong)))")  # fmt: skip
    unequal = f"received{f'[{low - 1}:0]' if width > 1 else ''} != crc[{low - 1}:0]"
    bits, peer = plan.message_words * width, model.width("peer")
    if not model.has("held"):  # where a message is all that it holds
        model.wire("held", "said", bits)
    model.claims({
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
    says = "a packet counts only if the sum behind it is that of its words; else it is lost"
    return replace(model.harness(says), name=f"sums of receiver_{latency}")
