"""Proofs of narrow cables, which carry each flit of a slow link in parts, by induction.

The splitter sends the parts of a flit one after another, and the joiner shows the last parts side
by side. If flits are far enough apart, which is a claim about the program, each flit so comes out
whole, as many cycles after its last part as the cable takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....proof.model import HarnessBuilder, earlier_value

if TYPE_CHECKING:
    from ....proof.solver import Harness
    from ....verilog.design import Design
    from ..hardware.link_plan import LinkPlan

__all__ = ["narrow_cable_harnesses"]


def narrow_cable_harnesses(plan: LinkPlan, design: Design) -> Iterator[Harness]:
    """Yield the proofs of the splitter and of the joiner; none if cables carry whole flits.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions of the links.
    design : Design
        Verilog of all boards.
    """
    if plan.parts == 1:
        return
    width, padding = plan.width, plan.parts * plan.width - plan.flit_bits
    model = HarnessBuilder(design, "splitter", resets=False)
    for number in range(plan.parts):
        # The flit that began `number` cycles ago, if none has begun since.
        whole = f"{{{{{padding + 1}{{1'b0}}}}, {earlier_value('flit', number)}}}"
        later = [earlier_value("sends", ago) for ago in range(number)]
        begun = " || ".join([f"!({earlier_value('sends', number)})", *later])
        part = f"{width}'({whole} >> {number * width})"
        model.claim(f"part_{number}_follows", f"{begun} || part == {part}", ago=number)
    yield model.make_harness("the parts of a flit are sent one after another, the lowest first")
    model = HarnessBuilder(design, "joiner", resets=False)
    parts = ", ".join(earlier_value("came", ago) for ago in range(plan.parts))
    whole = f"{plan.flit_bits}'({{{parts}}})"
    model.claim("parts_are_side_by_side", f"joined == {whole}", ago=plan.parts - 1)
    yield model.make_harness("the last parts that came are side by side, the lowest first")
