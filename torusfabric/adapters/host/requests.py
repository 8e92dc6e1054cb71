"""`Requests`: the module that checks the start of a run, and starts the core.

A *request* is a start with mode, length, root and operation, as far as runs choose these. An
invalid request is refused with an error number. For a valid request the module derives two inputs
of the core: the number of the form, from mode and length, and the number of the last flit of a
block, from the length. With several forms the last flit is valid one cycle after the start, because
it depends on the form, which the sequencer returns in that cycle.

`HostFront` and `BareFront` use this module.
"""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ...program import Program
from ...rtl.memories import address_width
from ...rtl.modules import Leaf
from ...rtl.run_choices import ERROR_BITS, RunChoices, RunError

__all__ = ["Requests"]


class Requests(Leaf):
    """Module that checks the requests of runs, and starts the core for each valid one.

    Parameters
    ----------
    program : Program
        The program of the core, which decides which inputs a request has.

    Members
    -------
    start : In(1)
        Requests a run.
    mode, length, root, operation : In
        Choices of the request, each only if the program leaves it open. `length` is the number of
        flits of a message.
    busy : In(1)
        High while a run is under way.
    run_form : In
        The number of the form of the run, which the sequencer outputs one cycle after the start;
        only with several forms.
    accepted : Out(1)
        Starts the core: high in the cycle of a `start` with a valid request.
    entry : Out
        The number of the requested form; only with several forms.
    last : Out
        The number of the last flit of a block, from 0; only if runs choose their length.
    error : Out(4)
        A `RunError`, the reason for the refusal of the last start; only if a request has choices.

    Examples
    --------
    A message has up to 8 flits, so that the input `length` has 4 bits. A block of this schedule has
    up to two flits, so that `last` is 0 or 1.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8, root="any")
    >>> requests = Requests(program)
    >>> len(requests.length), len(requests.last)
    (4, 1)
    """

    def __init__(self, program: Program) -> None:
        self._choices, self._several = RunChoices.from_program(program), len(program.forms) > 1
        self._loops = [form.loop for form in program.forms]
        inputs, lengths = self._choices.sampled_inputs, self._choices.lengths
        form_bits = address_width(len(self._loops)) * self._several
        most = max(loop.flits for loop in self._loops)
        super().__init__(
            {"start": In(1), "busy": In(1), "run_form": In(form_bits if lengths else 0)}
            | {name: In(bits) for name, bits in inputs.items()}
            | {
                "accepted": Out(1),
                "entry": Out(form_bits),
                "last": Out(address_width(most) if lengths else 0),
                "error": Out(ERROR_BITS if inputs else 0),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the checks of a request, and the logic for `entry` and `last`."""
        m = Module()
        accepted = self._choices.check_start(m, self, [(RunError.BUSY, self.input_value("busy"))])
        m.d.comb += self.accepted.eq(accepted)
        if self._several:
            m.d.comb += self.entry.eq(self._requested_form())
        if self._choices.lengths:
            m.d.comb += self.last.eq(self._last_flit(m, accepted))
        return m

    def _requested_form(self) -> Value:
        """Return a signal with the number of the form that mode and length of a request select.

        The number counts over all modes. If runs do not choose their length, each mode has one
        form.
        """
        if self._choices.lengths:
            return self._choices.form_number(self.input_value)
        return self.input_value("mode")

    def _last_flit(self, m: Module, accepted: Value) -> Value:
        """Return the number, from 0, of the last flit of a block, for the requested length.

        With several forms it is valid one cycle after `accepted`, the start of the run.
        """
        from ...rtl.lengths import last_flit_of_form

        lengths = self._choices.lengths
        assert lengths is not None
        last = (self.input_value("length") - 1)[: lengths.length_bits]
        form: Value = Const(0, 1)
        if self._several:
            held = Signal(len(last), name="flits_before", reset_less=True)
            with m.If(accepted):
                m.d.sync += held.eq(last)
            last, form = held, self.input_value("run_form")
        return last_flit_of_form(self._loops, lengths.beats_and_chunks, last, form)
