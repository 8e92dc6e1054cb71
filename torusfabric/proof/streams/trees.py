"""What is claimed of the nodes of the tree that finds out whether every node is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Model

if TYPE_CHECKING:
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["tree_harness"]


def tree_harness(design: Design, module: str) -> Harness:
    """The harness around a node of the tree: it shows a cycle later what all below say together.

    Parameters
    ----------
    design : Design
    module : str
        Its name in the text.
    """
    model = Model(design, module)
    inputs, bits = model.width("bad") // 2, model.width("any_length")
    if model.has("good"):
        for k in range(inputs):
            good = f"good[{k}]" if inputs > 1 else "good"
            model.assume(f"{good} == (bad[{2 * k + 1}:{2 * k}] == 0)")
    for name in ("ready", "bad", "length", "sends"):
        if model.has(name):
            model.past(f"past_{name}", name, model.width(name))
    sends = [f"past_sends[{k}]" if model.has("sends") else "1'b1" for k in range(inputs)]
    if inputs == 1 and model.has("sends"):
        sends = ["past_sends"]
    lengths = [f"past_length[{k * bits} +: {bits}]" if bits * inputs > 1 else "past_length"
               for k in range(inputs)]  # fmt: skip
    wrong = ["|".join(f"past_bad[{2 * k + bit}]" for k in range(inputs)) for bit in (0, 1)]
    if bits:
        differs = [
            f"({sends[a]} && {sends[b]} && {lengths[a]} != {lengths[b]})"
            for a in range(inputs)
            for b in range(a)
        ]
        wrong[0] = " || ".join([wrong[0], *differs])
        for k in range(inputs):
            model.claim(
                f"shows_the_length_of_{k}",
                f"!steady || any_bad[0] || !{sends[k]} || any_length == {lengths[k]}",
            )
        if model.has("sends"):
            model.claim("shows_who_sends", f"!steady || any_sends == ({' || '.join(sends)})")
    model.claims({
        "ready_if_all_are": "all_ready == &past_ready",
        "shows_that_none_is_bad": "!steady || none_bad == (any_bad == 0)",
        "shows_bad_lengths": f"!steady || any_bad[0] == ({wrong[0]})",
        "shows_bad_destinations": f"!steady || any_bad[1] == ({wrong[1]})",
    })  # fmt: skip
    return model.harness(module)
