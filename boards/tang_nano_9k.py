"""Tang Nano 9K by Sipeed: GW1NR-9C at 27 MHz; the serial line is on its USB plug.

The first three of its lamps show that something runs, a pass and a failure. Amaranth's platform
calls `nextpnr-gowin`, which is no more: its successor `nextpnr-himbaechel` takes the same files
with other options.
"""

from amaranth_boards.tang_nano_9k import TangNano9kPlatform

from torusfabric.fpga.board import COMPACT, Board, Limit


class Himbaechel(TangNano9kPlatform):
    """The platform with the place-and-route tool of today."""

    @property
    def command_templates(self) -> list[str]:
        """The commands of the platform, that of place and route replaced."""
        return [
            r"""
            {{invoke_tool("nextpnr-himbaechel-gowin")}}
                {{quiet("--quiet")}}
                {{get_override("nextpnr_opts")|options}}
                --log {{name}}.tim
                --device {{platform.part}}
                --vopt family={{platform._chipdb_device}}
                --vopt cst={{name}}.cst
                --json {{name}}.syn.json
                --write {{name}}.pnr.json
            """
            if "nextpnr-gowin" in text
            else text
            for text in super().command_templates
        ]


BOARDS = {
    "tang-nano-9k": Board(
        title="Sipeed Tang Nano 9K, GW1NR-9C",
        platform=Himbaechel,
        program=("openFPGALoader", "-b", "tangnano9k", "selftest.fs"),
        products=("selftest.fs",),
        packer=("nextpnr-himbaechel-gowin", "gowin_pack"),
        port="/dev/ttyUSB1",
        lamps={"running": ("led", 0), "passed": ("led", 1), "failed": ("led", 2)},
        options=COMPACT,
        limit=Limit(side=5, measured="tang-nano-9k"),
        minutes=15,
    ),
}
