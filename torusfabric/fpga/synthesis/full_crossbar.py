"""`full_crossbar`: a router that can send any input to any out-port, for comparison.

The user is `synthesize`. A *setting* of a router is one choice of an input for each out-port. A
full crossbar has the in-ports, words of the node, width and number of settings of the router that
it is compared with. The saving against it is due to the schedule alone, because the rest is as good
as we know to make it:

- It has the same cascades as the router (see `torusfabric.rtl.multiplexer`), the cheapest form.
- Between two stages of a cascade stands a module, so that synthesis keeps the cascade instead of
  a tree with more LUTs.
- Each out-port selects from all words of the node. The alternative is one injected word for each
  out-port, selected in front of the crossbar, which takes more LUTs in all.
- Its settings are random, because a crossbar for any program cannot rely on their order.
"""

import random
from collections.abc import Sequence

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Signal, Value

from ...rtl.amaranth_private import no_inferred_names
from ...rtl.memories import address_width
from ...rtl.multiplexer import plain_cascade, select_bits, select_code
from ...verilog.design import Design, RouterShape
from ...verilog.module_text import ModuleText
from ...verilog.writer import Heading, write_module

__all__ = ["full_crossbar"]


def full_crossbar(shape: RouterShape) -> Design:
    """Return the Verilog of a full crossbar, whose top is ``full``.

    Each out-port has a cascade of selectors over all inputs, and a register. A setting is one
    choice of an input for each out-port. A ROM has the select bits of all settings; if the shape
    has no settings, select bits are inputs.

    Parameters
    ----------
    shape : RouterShape
        Numbers of ports, words of the node, bits of a word, and settings.
    """
    width, counts = shape.width, {"rx": shape.ports, "inject": shape.own_words}
    inputs = shape.ports + shape.own_words
    bits = len(select_bits(inputs, 0))
    select = Signal(bits * shape.ports, name="select")
    setting = Signal(address_width(shape.settings), name="setting")
    word, same = Signal(width, name="word"), Signal(width, name="same")
    enable, tx = Signal(name="enable"), Signal(shape.ports * width, name="tx", reset_less=True)
    given = [Signal(count * width, name=name) for name, count in counts.items()]
    words = [Cat(given).word_select(k, width) for k in range(inputs)]
    top, stage = Module(), Module()
    stage.d.comb += same.eq(word)

    def keep_word(value: Value) -> Value:
        kept = Signal(width, name="kept")
        top.submodules += Instance("stage", i_word=value, o_same=kept)
        return kept

    for port in range(shape.ports):
        chosen = plain_cascade(words, [*select.word_select(port, bits)], width, keep_word)
        with top.If(enable):
            top.d.sync += tx.word_select(port, width).eq(chosen)
    texts = {"stage": _module_text("stage", stage, [word, same])}
    if shape.settings:
        pins = {"i_clk": ClockSignal(), "i_setting": setting, "o_select": select}
        top.submodules += Instance("settings", **pins)
        out = Signal(len(select), name="select", reset_less=True)
        texts["settings"] = _module_text(
            "settings", _settings_rom(shape, setting, out), [setting, out]
        )
    control = setting if shape.settings else select
    texts["full"] = _module_text("full", top, [enable, control, *given, tx])
    children = {name: module.children for name, module in texts.items()}
    return Design({name: module.text for name, module in texts.items()}, "full", children)


def _module_text(name: str, module: Module, ports: Sequence[Signal]) -> ModuleText:
    with no_inferred_names():
        return write_module(Heading(name), module, {port.name: port for port in ports})


def _settings_rom(shape: RouterShape, setting: Signal, select: Signal) -> Module:
    """Return a module with a ROM of random select bits, and a register behind it.

    A word of the ROM is a setting: one choice of an input for each out-port.

    Parameters
    ----------
    shape : RouterShape
        Numbers of ports, words of the node, and settings.
    setting : Signal
        Address of the ROM: the number of the setting.
    select : Signal
        Select bits of all out-ports for this setting, one cycle later.
    """
    m, chance, inputs = Module(), random.Random(0), shape.ports + shape.own_words
    bits = len(select) // shape.ports
    with m.Switch(setting):
        for row in range(shape.settings):
            sources = [chance.randrange(inputs) for _ in range(shape.ports)]
            codes = [Const(select_code(inputs, source), bits) for source in sources]
            with m.Default() if row == shape.settings - 1 else m.Case(row):
                m.d.sync += select.eq(Cat(codes))
    return m
