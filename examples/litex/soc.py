"""A SoC without a processor: an external Wishbone master, some memory, and a fabric.

    torusfabric verilog 4x4 allreduce --bus wishbone --width 32 --max-flits 16 -o fabric/
    python soc.py fabric/ build/

writes `build/gateware/soc.v`, `build/csr.csv` and `build/software/include/generated/csr.h`. A
processor of LiteX (`cpu_type`) can take the place of the master; the fabric is added in the same
way.
"""

import sys
from typing import Any

from litex.build.generic_platform import GenericPlatform, Pins
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import wishbone
from migen.genlib.io import CRG

from torusfabric.verilog.litex import add_fabric

#: Address of the fabric on the bus.
ORIGIN = 0x3000_0000


class Platform(GenericPlatform):
    """Platform for any device; the build ends with the Verilog."""

    def build(self, fragment: Any, build_dir: str, build_name: str, **_: object) -> None:
        """Write the Verilog."""
        self.get_verilog(fragment, name=build_name).write(f"{build_dir}/{build_name}.v")


class FabricSoC(SoCMini):
    """SoC with a fabric and 1 KB of memory on a Wishbone bus."""

    def __init__(self, folder: str) -> None:
        platform = Platform("", [("clk", 0, Pins(1)), ("rst", 0, Pins(1)), ("irq", 0, Pins(1))])
        super().__init__(platform, clk_freq=50_000_000, ident="", with_timer=False)
        self.crg = CRG(platform.request("clk"), platform.request("rst"))
        self.add_ram("memory", origin=0x1000_0000, size=1024)
        fabric = add_fabric(self, "fabric", folder, ORIGIN)
        self.comb += platform.request("irq").eq(fabric.ev.irq)
        host = wishbone.Interface()
        self.bus.add_master("host", host)
        platform.add_extension(host.get_ios("host"))
        self.comb += host.connect_to_pads(platform.request("host"), mode="slave")


def main(folder: str, output: str) -> None:
    """Build the SoC."""
    soc = FabricSoC(folder)
    builder = Builder(soc, output_dir=output, csr_csv=f"{output}/csr.csv", compile_software=False)
    builder.build(build_name="soc")


if __name__ == "__main__":
    main(*sys.argv[1:])
