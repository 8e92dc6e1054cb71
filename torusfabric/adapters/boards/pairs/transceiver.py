"""Verilog of an ECP5 transceiver with the 8b10b code, made by LiteICLink.

LiteICLink is by Florent Kermarrec, under the two-clause BSD licence, and follows Yumewatari by
whitequark. The 8b10b code is from LiteX, by Sebastien Bourdeauducq and Florent Kermarrec. Both are
written in Migen, which emits the Verilog.
"""

from __future__ import annotations

from types import SimpleNamespace

from liteiclink.serdes.serdes_ecp5 import SerDesECP5, SerDesECP5PLL
from litex.build.lattice.common import lattice_ecp5_trellis_special_overrides
from litex.gen.genlib.misc import WaitTimer
from migen import Cat, ClockDomain, Module, Signal
from migen.fhdl import verilog
from migen.genlib.resetsync import AsyncResetSynchronizer

from ....errors import InputError
from .words import ByteEncoding

__all__ = ["transceiver_files"]

#: Length of the reset of the sending side, in cycles of ``sys_clk``.
RESET_CYCLES = 1024


def transceiver_files(
    name: str, *, dual: int, channel: int, mhz: float, mbits: float
) -> dict[str, str]:
    """Return the Verilog file of a transceiver, and the files that it reads.

    Ports of the module:

    - ``sys_clk``, ``sys_rst``: clock and reset of the start-up sequence;
    - ``refclk``: reference clock;
    - ``tx_p``, ``tx_n``, ``rx_p``, ``rx_n``: pins;
    - ``sent``: two units of `ByteEncoding` to send in each cycle of ``tx_clk_out``;
    - ``came``: two received units in each cycle of ``rx_clk_out``. Two units that were sent in one
      cycle may arrive in two consecutive cycles.

    Parameters
    ----------
    name : str
        Name of the module.
    dual, channel : int
        Location of the transceiver: the number of a dual (a block of two), and its channel 0 or 1.
    mhz : float
        Frequency of the reference clock.
    mbits : float
        Rate of a pair, in Mbit/s.

    Returns
    -------
    dict of str to str
        Content of each file, by file name.

    Raises
    ------
    InputError
        If the PLL cannot make the rate from the reference clock.
    """
    try:
        pll = SerDesECP5PLL(Signal(name="refclk"), 1e6 * mhz, 1e6 * mbits)
    except ValueError:
        raise InputError(
            f"An oscillator of {mhz:g} MHz cannot drive a transceiver at {mbits:g} Mbit/s; choose "
            "a board with another oscillator"
        ) from None
    tx, rx = (
        SimpleNamespace(p=Signal(name=f"{way}_p"), n=Signal(name=f"{way}_n"))
        for way in ("tx", "rx")
    )
    m, bits = Module(), ByteEncoding.gear * ByteEncoding.unit
    m.clock_domains.cd_sys = ClockDomain()
    m.submodules.serdes = serdes = SerDesECP5(pll, tx, rx, dual=dual, channel=channel)
    # LiteICLink 2025.4 makes decoders without adding them to the module: add them here.
    known = {id(part) for _, part in serdes._submodules}  # noqa: SLF001
    serdes.submodules += [part for part in serdes.decoders if id(part) not in known]
    _send_always(m, serdes)
    sent, came = Signal(bits, name="sent"), Signal(bits, name="came")
    tx_clk, rx_clk = Signal(name="tx_clk_out"), Signal(name="rx_clk_out")
    m.comb += [tx_clk.eq(serdes.txoutclk), rx_clk.eq(serdes.rxoutclk)]
    for k in range(ByteEncoding.gear):
        byte = sent[ByteEncoding.unit * k : ByteEncoding.unit * (k + 1)]
        m.comb += Cat(serdes.encoder.d[k], serdes.encoder.k[k]).eq(byte)
    m.comb += came.eq(Cat(*(Cat(decoder.d, decoder.k) for decoder in serdes.decoders)))
    ports = {m.cd_sys.clk, m.cd_sys.rst, pll.refclk, tx.p, tx.n, rx.p, rx.n}
    ports |= {tx_clk, rx_clk, sent, came}
    overrides = lattice_ecp5_trellis_special_overrides
    converted = verilog.convert(m, ports, name=name, special_overrides=overrides)
    return {f"{name}.v": converted.main_source, **converted.data_files}


def _send_always(m: Module, serdes: SerDesECP5) -> None:
    """Let a transceiver send as soon as its clock is stable.

    Why: LiteICLink starts sending only while it receives, so two boards would wait for each other.
    `serdes` is the transceiver of LiteICLink.
    """
    m.submodules.timer = timer = WaitTimer(RESET_CYCLES)
    off = Signal(name="tx_off")
    m.comb += [timer.wait.eq(1), off.eq(~timer.done | serdes.init.tx_lol)]
    serdes.serdes_params.update(i_D_FFC_TRST=~timer.done, i_CHX_FFC_LANE_TX_RST=off)
    specials = serdes._fragment.specials  # noqa: SLF001
    of_sender = {
        each
        for each in specials
        if isinstance(each, AsyncResetSynchronizer) and each.cd is serdes.cd_tx
    }
    specials -= of_sender
    m.specials += AsyncResetSynchronizer(serdes.cd_tx, off)
