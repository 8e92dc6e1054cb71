"""Files for Tiny Tapeout, whose chips carry hundreds of small projects: a project in its template.

The files follow the template for Verilog projects (``TinyTapeout/ttsky-verilog-template``). A
wrapper connects the host port of a fabric to 24 pins. It has a strobe, the code of a command, a
byte to the fabric and a byte from it::

    pins           ui_in      uio_in[4:1]  uio_in[0]  uo_out     uio_out[6]  uio_out[7]
    content        byte in    code         strobe     byte out   busy        done

Code 0 takes a byte, code 1 writes a word, code 2 starts a run. The fabric's other inputs, such as
the address, are one number, of which the lowest byte is at the pins ``ui_in`` and the other bytes
have been taken before. Reading needs no command: the code selects the byte of the output.

Why no serial line: a receiver, a transmitter and a bus would be larger than a small fabric.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from ...contract.interface import BenchAdditions
from ...errors import InputError
from ...rtl.fabric import Fabric
from ...rtl.inventory import take_inventory
from ...toolchain.notices import send_notice
from ...verilog import emit
from ...verilog.design import VERILOG_FILE, Design
from ...verilog.flows.clocks import CHIP_PERIOD
from ...verilog.manifest import bench_files, json_text
from ...verilog.module_text import MemoryStyle
from ...verilog.one_hot import ASIC
from ...verilog.syntax import range_of
from ..synthesis.synthesize import synthesize
from ..synthesis.target import SILICON

__all__ = ["project_files"]

SOURCES = Path(__file__).parent / "files"

#: Folder of the project in an export.
FOLDER = "tinytapeout"

#: Ports that commands drive or that have pins of their own.
COMMANDS = {"clk": "clk", "rst": "reset_stage[1]", "host_we": "strobe && code == 4'd1",
            "start": "strobe && code == 4'd2", "busy": "busy", "done": "done"}  # fmt: skip

#: Outputs that are read byte by byte. Others, such as `cycles`, are left out to save area.
READ = ("host_rdata", "error")

#: Numbers of bytes that a code can select.
CODES = 16

#: Size of a project in tiles -> its width and height in micrometres, in the process sky130A:
#: ``tech/sky130A/tile_sizes.yaml`` of ``TinyTapeout/tt-support-tools``, smallest first.
TILES = {
    "1x1": (161.00, 111.52),
    "1x2": (161.00, 225.76),
    "2x2": (334.88, 225.76),
    "3x2": (508.76, 225.76),
    "4x2": (682.64, 225.76),
    "6x2": (1030.40, 225.76),
    "3x4": (508.76, 511.36),
    "8x2": (1378.16, 225.76),
    "4x4": (682.64, 511.36),
    "5x4": (856.52, 511.36),
    "6x4": (1030.40, 511.36),
    "8x4": (1378.16, 511.36),
}

#: Area of a NAND gate of two inputs, ``sky130_fd_sc_hd__nand2_1``, in square micrometres.
GATE_AREA = 3.7536

#: Gate equivalents of a flip-flop, at least.
FLIP_FLOP = 5

#: Share of the area that the synthesized cells fill. Why so little: the layout adds buffers and a
#: clock tree, and at a density of 60 percent the router still finds its ways.
UTILIZATION = 0.5

#: Settings of LibreLane that the template has. Pins, power and size are those of a tile.
SETTINGS = {
    "PL_TARGET_DENSITY_PCT": 60,
    "PL_RESIZER_HOLD_SLACK_MARGIN": 0.1,
    "GRT_RESIZER_HOLD_SLACK_MARGIN": 0.05,
    "RUN_LINTER": 1,
    "LINTER_INCLUDE_PDK_MODELS": 1,
    "CLOCK_PORT": "clk",
    "RUN_KLAYOUT_XOR": 0,
    "RUN_KLAYOUT_DRC": 0,
    "DESIGN_REPAIR_BUFFER_OUTPUT_PORTS": 0,
    "TOP_MARGIN_MULT": 1,
    "BOTTOM_MARGIN_MULT": 1,
    "LEFT_MARGIN_MULT": 6,
    "RIGHT_MARGIN_MULT": 6,
    "FP_SIZING": "absolute",
    "GRT_ALLOW_CONGESTION": 1,
    "FP_IO_HLENGTH": 2,
    "FP_IO_VLENGTH": 2,
    "FP_PDN_VPITCH": 38.87,
    "RUN_CTS": 1,
    "FP_PDN_MULTILAYER": 0,
    "MAGIC_DEF_LABELS": 0,
    "MAGIC_WRITE_LEF_PINONLY": 1,
}


def project_files(fabric: Fabric, manifest: Mapping[str, Any], title: str) -> dict[str, str]:
    """Return the texts of all files of a project of Tiny Tapeout by name; see `flow_files`.

    The project is synthesized for silicon, and its area decides the number of its tiles.

    Raises
    ------
    InputError
        If the fabric has no host port, its tables are loaded, its words have too many bytes, or it
        is larger than the largest project.
    """
    ports, name = manifest["ports"], f"tt_um_{manifest['top']}"
    if "host_we" not in ports:
        raise InputError(
            f"--flow tinytapeout needs a host port behind its pins, not {manifest['interface']}; "
            "leave --top and --bus out"
        )
    if "load_we" in ports:
        raise InputError(
            "--flow tinytapeout needs fixed tables, because the tables of a chip are empty at "
            "first; leave --tables ram out"
        )
    shown = [each for port in READ if port in ports
             for each in _bytes_of(port, ports[port]["width"])]  # fmt: skip
    if len(shown) > CODES:
        raise InputError(
            f"--flow tinytapeout needs words of at most {8 * (CODES - ('error' in ports))} bits, "
            f"not {ports['host_rdata']['width']}; give a smaller --width or --beat"
        )
    # Refuse a hopeless size before it is synthesized.
    _choose_tiles(FLIP_FLOP * take_inventory(fabric.netlist).memory_bits)
    fields = _input_fields(ports)
    size = -(-sum(width for _, width in fields.values()) // 8)
    facts = {
        "title": title,
        "name": name,
        "top": manifest["top"],
        "bytes": "\n".join(_taken_bytes(size)),
        "outputs": "\n".join(
            f"  wire {range_of(each['width'])}{port};"
            for port, each in ports.items()
            if each["direction"] == "output"
        ),
        "connections": ",\n".join(f"    .{port}({net})" for port, net in _port_nets(ports, fields)),
        "unused": "".join(
            f", {port}"
            for port, each in ports.items()
            if each["direction"] == "output" and port not in {*COMMANDS, *READ}
        ),
        "shown": "\n".join(f"    4'd{code}: shown = {net};" for code, net in enumerate(shown)),
    }
    fill = lambda source: Template((SOURCES / source).read_text("utf-8")).substitute(facts)
    # All memories of the project are flip-flops, whatever the rule for memories of FPGAs.
    verilog = f"`define {ASIC}\n{emit(fabric, ram=MemoryStyle.REGISTERS.value).text}"
    project = fill("project.v")
    gates = synthesize(Design({name: f"{project}\n{verilog}"}, name, {}), SILICON).fabric["gates"]
    tiles = _choose_tiles(gates)
    send_notice(f"Tiny Tapeout: about {gates:,.0f} gate equivalents, {tiles} tiles")
    facts |= {
        "nodes": manifest["nodes"],
        "gates": f"{gates:,.0f}",
        "tiles": tiles,
        "size": size,
        "fields": "\n".join(
            f"| {low} | {width} | `{port}` | {ports[port]['meaning']} |"
            for port, (low, width) in fields.items()
        ),
        "more": f", code {len(shown) - 1} the error number" if "error" in ports else "",
        **{key: manifest[key] for key in ("send_base", "recv_base", "stride")},
        "latency": manifest["read_latency"],
    }
    bench = bench_files(BenchAdditions(fabric.interface.bench_files(), name))
    made = {f"test/{Path(path).name}": text for path, text in bench.items() if path.endswith(".py")}
    made |= {
        "info.yaml": _info_text(name, title, tiles),
        "manifest.json": json_text(manifest),
        "docs/info.md": fill("info.md"),
        "src/project.v": project,
        "src/fabric.v": verilog,
        "src/config.json": json_text({"CLOCK_PERIOD": CHIP_PERIOD, **SETTINGS}),
        "test/tb.v": fill("tb.v"),
        **{f"test/{each}": (SOURCES / each).read_text("utf-8")
           for each in ("Makefile", "fabric_port.py")},
        "test/requirements.txt": "cocotb>=2,<3\npytest\n",
    }  # fmt: skip
    return {f"{FOLDER}/{path}": text for path, text in made.items()}


def _choose_tiles(gates: float) -> str:
    """Return the smallest size of a project in which an area of `gates` gate equivalents fits."""
    area = gates * GATE_AREA / UTILIZATION
    for tiles, (width, height) in TILES.items():
        if area <= width * height:
            return tiles
    most = width * height * UTILIZATION / GATE_AREA
    raise InputError(
        f"--flow tinytapeout needs a fabric of at most {most:,.0f} gate equivalents, which fill "
        f"{tiles} tiles, not {gates:,.0f} or more; give fewer nodes, --flits or a smaller --width"
    )


def _input_fields(ports: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the lowest bit and the width of each input in the number of all, the highest first."""
    widths = {port: each["width"] for port, each in ports.items()
              if each["direction"] == "input" and port not in COMMANDS}  # fmt: skip
    fields, low = dict[str, tuple[int, int]](), sum(widths.values())
    for port, width in widths.items():
        low -= width
        fields[port] = (low, width)
    return fields


def _taken_bytes(size: int) -> list[str]:
    """Return the Verilog of the number of all inputs, `size` bytes; the lowest is at the pins."""
    if size == 1:
        return ["  wire [7:0] inputs = ui_in;"]
    taken = 8 * (size - 1)
    earlier = f"{{taken[{taken - 9}:0], ui_in}}" if size > 2 else "ui_in"
    return [
        f"  reg [{taken - 1}:0] taken;",
        f"  wire [{taken + 7}:0] inputs = {{taken, ui_in}};",
        f"  always @(posedge clk) if (strobe && code == 4'd0) taken <= {earlier};",
    ]


def _bytes_of(net: str, width: int) -> list[str]:
    """Return the bytes of a net as Verilog expressions, the lowest first."""
    if width == 1:
        return [f"{{7'd0, {net}}}"]
    pieces = [(low, min(low + 8, width)) for low in range(0, width, 8)]
    return [
        f"{net}[{high - 1}:{low}]"
        if high - low == 8
        else f"{{{8 - high + low}'d0, {net}[{high - 1}:{low}]}}"
        for low, high in pieces
    ]


def _port_nets(
    ports: Mapping[str, Any], fields: Mapping[str, tuple[int, int]]
) -> list[tuple[str, str]]:
    """Return each port of the fabric with the net at it."""
    places = {
        port: f"inputs[{low + width - 1}:{low}]" if width > 1 else f"inputs[{low}]"
        for port, (low, width) in fields.items()
    }
    return [(port, (places | COMMANDS).get(port, port)) for port in ports]


def _info_text(name: str, title: str, tiles: str) -> str:
    """Return ``info.yaml``, which names the project, its files and its pins."""
    pins = {f"ui[{k}]": f"byte in, bit {k}" for k in range(8)}
    pins |= {f"uo[{k}]": f"byte out, bit {k}" for k in range(8)}
    pins |= {"uio[0]": "strobe"} | {f"uio[{k + 1}]": f"code, bit {k}" for k in range(4)}
    pins |= {"uio[5]": "", "uio[6]": "busy", "uio[7]": "done"}
    project = {
        "title": title,
        "author": "Enter your name",
        "discord": "",
        "description": title,
        "language": "Verilog",
        "clock_hz": round(1e9 / CHIP_PERIOD),
        "tiles": tiles,
        "top_module": name,
        "source_files": ["project.v", VERILOG_FILE],
    }
    lines = ["# Project of Tiny Tapeout: enter your name.", "project:"]
    lines += [f"  {key}: {json.dumps(value)}" for key, value in project.items()]
    lines += ["pinout:", *(f'  "{pin}": {json.dumps(text)}' for pin, text in pins.items())]
    return "\n".join([*lines, "yaml_version: 6", ""])
