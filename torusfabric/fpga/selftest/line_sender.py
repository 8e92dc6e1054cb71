"""The sender: lines of text from a ROM, with numbers filled in."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...errors import InputError
from ...rtl.memories import rom_and_port

__all__ = ["LineSender", "Template"]

#: A byte of the ROM with this bit set stands for a number, by its position among the numbers.
NUMBER = 0x80

#: Bytes of all lines.
MOST_BYTES = 1 << 12


class Template:
    """Lines of text in which ``{name}`` stands for a number in hexadecimal.

    Parameters
    ----------
    lines : dict of str to str
        Each line by its name, without the newline at its end.
    numbers : dict of str to int
        The name of each number and how many bits it has.

    Attributes
    ----------
    starts : dict of str to int
        Where each line begins in the ROM.
    rom : list of int
        The bytes of all lines.
    """

    def __init__(self, lines: Mapping[str, str], numbers: Mapping[str, int]) -> None:
        self.numbers = numbers
        self.starts: dict[str, int] = {}
        self.rom: list[int] = []
        codes = {name: chr(NUMBER | code) for code, name in enumerate(numbers)}
        for name, line in lines.items():
            for number, code in codes.items():
                line = line.replace("{" + number + "}", code)
            self.starts[name] = len(self.rom)
            self.rom += (line + "\n").encode("latin-1")

    def digits(self, name: str) -> int:
        """Hexadecimal digits of a number."""
        return -(-self.numbers[name] // 4)


class LineSender(wiring.Component):
    """Sends a line.

    Parameters
    ----------
    template : Template

    Members
    -------
    start : In(1)
    line : In
        What to send: a value of `Template.starts`.
    busy : Out(1)
        From the cycle after `start` until the last byte is passed on.
    data : Out(stream of 8 bits)
    number_NAME : In
        The value of each number.
    """

    def __init__(self, template: Template) -> None:
        self._template = template
        if len(template.rom) > MOST_BYTES:
            raise InputError(
                f"Lines must have up to {MOST_BYTES} bytes in all, not {len(template.rom)}"
            )
        super().__init__(
            {
                "start": In(1),
                "line": In(range(len(template.rom))),
                "busy": Out(1),
                "data": Out(stream.Signature(8)),
            }
            | {f"number_{name}": In(bits) for name, bits in template.numbers.items()}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the ROM and the state machine that goes through a line."""
        m = Module()
        template, rom = self._template, self._template.rom
        m.submodules.text, port = rom_and_port("text", rom, 8)
        address = Signal(range(len(rom) + 1), name="address")
        m.d.comb += port.addr.eq(address)
        most = max(template.digits(name) for name in template.numbers)
        digits, left = Signal(4 * most, name="digits"), Signal(range(most + 1), name="left")
        code, numeral = Signal(8, name="code"), Signal(8, name="numeral")
        top = digits[-4:]
        with m.If(top < 10):
            m.d.comb += numeral.eq(Cat(top, Const(3, 4)))
        with m.Else():
            m.d.comb += numeral.eq(top + (ord("a") - 10))
        with m.FSM() as states:
            m.d.comb += self.busy.eq(~states.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += address.eq(self.line)
                with m.If(self.start):
                    m.next = "FETCH"
            m.d.comb += port.en.eq(states.ongoing("FETCH"))
            with m.State("FETCH"):
                m.d.sync += address.eq(address + 1)
                m.next = "LATCH"
            with m.State("LATCH"):  # block RAMs answer late in the cycle
                m.d.sync += code.eq(port.data)
                m.next = "BYTE"
            with m.State("BYTE"):
                m.d.comb += self.data.payload.eq(code)
                with m.If(code & NUMBER):
                    self._load(m, code, digits, left)
                    m.next = "DIGIT"
                with m.Else():
                    m.d.comb += self.data.valid.eq(1)
                    with m.If(self.data.ready):
                        m.next = "FETCH"
                        with m.If(code == ord("\n")):
                            m.next = "IDLE"
            with m.State("DIGIT"):
                m.d.comb += [self.data.valid.eq(1), self.data.payload.eq(numeral)]
                with m.If(self.data.ready):
                    m.d.sync += [digits.eq(digits << 4), left.eq(left - 1)]
                    with m.If(left == 1):
                        m.next = "FETCH"
        return m

    def _load(self, m: Module, code: Any, digits: Signal, left: Signal) -> None:
        """Load the number that a byte of the ROM stands for, its first digit uppermost."""
        with m.Switch(code[:-1]):
            for number, name in enumerate(self._template.numbers):
                count, value = self._template.digits(name), getattr(self, f"number_{name}")
                with m.Case(number):
                    m.d.sync += [digits.eq(value << (len(digits) - 4 * count)), left.eq(count)]
