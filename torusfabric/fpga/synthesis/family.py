"""Device families: `Cost`, the resources that a netlist uses, and `Family`, cells and tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from ...toolchain.values import Choice

__all__ = ["Cost", "Family", "Mapping", "count_alms", "count_dual_luts",
           "count_ice40_cells"]  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """The resources that a netlist uses.

    Parameters
    ----------
    luts : int
        LUTs, whatever their number of inputs. LUTs used as adders count (two for each ECP5 CCU2C),
        and so do LUTs used as memory. An ECP5 TRELLIS_DPR16X4 counts six: four hold 16 x 4 bits,
        and two give up their position to the write port. A Gowin RAM16SDP4 counts eight, because
        the other four LUTs of its block cannot be used.
    ffs : int
        Flip-flops.
    brams : int
        Block RAMs; for Xilinx and GateMate, halves of block RAMs.
    lutrams : int
        LUT memories of 16 x 4 bits; for Xilinx, LUTs used as memory.
    carries : int
        Bits of carry chains, which need no resources beyond their LUTs.
    muxes : int
        Wide multiplexers, which need no resources beyond their LUTs.
    dsps : int
        Multipliers.
    sprams : int
        Single-port RAMs.
    cells : int
        iCE40: logic cells of one LUT and one flip-flop. A flip-flop shares a cell only with the LUT
        that drives it and nothing else; a carry bit only with a LUT on the same inputs. Cyclone V:
        an upper bound of the adaptive logic modules (ALMs). Xilinx: LUTs if two with five inputs
        together share one, by its two outputs.
    urams : int
        Ultra RAMs of 288 kbit.
    gates : float
        Silicon: gate equivalents, the area of cells divided by that of a NAND gate of two inputs.
    ram_bits : int
        Silicon: bits of memories that are no cells. Their area depends on a memory compiler.
    """

    luts: int = 0
    ffs: int = 0
    brams: int = 0
    lutrams: int = 0
    carries: int = 0
    muxes: int = 0
    dsps: int = 0
    sprams: int = 0
    cells: int = 0
    urams: int = 0
    gates: float = 0
    ram_bits: int = 0

    @property
    def logic_size(self) -> float:
        """LUTs, or gate equivalents on silicon."""
        return self.luts or self.gates

    def plus(self, other: Cost, times: int = 1) -> Cost:
        """Return this cost plus `times` times the cost `other`."""
        names = [f.name for f in fields(self)]
        sums = (getattr(self, name) + times * getattr(other, name) for name in names)
        return Cost(*(round(size, 2) for size in sums))


class Mapping(Choice):
    """The aim of technology mapping: few LUTs, or few levels by wide multiplexers."""

    COMPACT = "compact"
    FAST = "fast"


@dataclass(frozen=True)
class Family:
    """A family of FPGA devices, with the same cells (LUTs, block RAMs, ..) and the same tools.

    Parameters
    ----------
    synth : str
        The yosys command, with options for speed. It adds no pads. Why: it would also add them to
        the children of a module, which are black boxes.
    cells : dict of Cost to str
        Cost of a cell -> patterns of the cell types with this cost. Any other type is an error.
    compact : str
        Options added to `synth` for few LUTs.
    before_registers : tuple of str
        Yosys commands that run before flip-flops are mapped.
    memory_stage : tuple of str
        The stage of `synth` that maps memories, and the stage behind it. Modules without memories
        skip this stage, if it is slow. Empty if none is.
    pnr : str or None
        Place-and-route tool; None if only the vendor has one.
    pnr_args : tuple of str
        Arguments of `pnr`: they permit ports without pin constraints, and make the placer give
        more weight to slow paths.
    placers : tuple of str
        Placers of `pnr`, in order of preference, if it has several. The next one runs if one fails
        or gets stuck.
    defines : tuple of str
        Macros that select the variant of the Verilog that suits the cells.
    pads : str
        Yosys command that adds pads to a module; the name of the module follows.
    inputs : int
        Inputs of a LUT; 0 for silicon.
    module_costs : function of (module) -> Cost, optional
        Cost of a module beyond the sum over its cells, such as the logic cells that its LUTs and
        flip-flops fill. The module is an entry of ``modules`` in a netlist that yosys wrote as
        JSON.
    block_shapes : tuple of (int, int)
        Shapes of a block RAM as (words, bits), for families on which memories made of LUTs are
        costly. Empty if the tool may choose.
    lut_memory : tuple of (int, int, int)
        LUTs, words and bits of the smallest memory made of LUTs.
    after : tuple of str
        Yosys commands that run after `synth`.
    files : tuple of (str, str)
        Files that these commands read, as (name, text).
    """

    synth: str
    cells: dict[Cost, str]
    compact: str = ""
    before_registers: tuple[str, ...] = ()
    memory_stage: tuple[str, str] | tuple[()] = ()
    pnr: str | None = None
    pnr_args: tuple[str, ...] = ()
    placers: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    pads: str = ""
    inputs: int = 4
    module_costs: Callable[[dict[str, Any]], Cost] | None = None
    block_shapes: tuple[tuple[int, int], ...] = ()
    lut_memory: tuple[int, int, int] = (1, 1, 1)
    after: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    def block_ram_count(self, width: int, depth: int) -> int:
        """Return the fewest block RAMs that hold a memory of `depth` words of `width` bits."""
        return min(-(-depth // words) * -(-width // bits) for words, bits in self.block_shapes)

    def yosys_script(
        self, top: str, mapping: Mapping, *, pads: bool = False, memories: bool = True
    ) -> str:
        """Return the yosys commands that map a module; with `pads`, its ports become pins.

        Parameters
        ----------
        top : str
            Name of the module.
        mapping : Mapping
            Aim of technology mapping.
        pads : bool
            True to add the cells of pins, if the family has a command for them.
        memories : bool
            False if no module has a memory.

        Examples
        --------
        For this family, a command runs before flip-flops are mapped.

        >>> ice40 = Family("synth_ice40", {}, before_registers=("dffunmap",))
        >>> print(ice40.yosys_script("node", Mapping.FAST), end="")
        synth_ice40 -top node -run begin:map_ffs
        dffunmap
        synth_ice40 -top node -run map_ffs:

        For this one, a module without memories skips a stage.

        >>> xilinx = Family("synth_xilinx", {}, memory_stage=("map_memory", "map_ffram"))
        >>> print(xilinx.yosys_script("node", Mapping.FAST, memories=False), end="")
        synth_xilinx -top node -run begin:map_memory
        synth_xilinx -top node -run map_ffram:
        """
        more = self.compact if mapping is Mapping.COMPACT else ""
        command = f"{self.synth}{more} -top {top}"
        # Places to stop at: the next stage, the commands to run, and the stage to continue with.
        stops = [("map_ffs", self.before_registers, "map_ffs")] if self.before_registers else []
        if self.memory_stage and not memories:
            stops.insert(0, (self.memory_stage[0], (), self.memory_stage[1]))
        lines, stage = list[str](), "begin"
        for end, commands, following in stops:
            lines += [f"{command} -run {stage}:{end}", *commands]
            stage = following
        lines += [f"{command} -run {stage}:" if stops else command, *self.after]
        lines += [f"{self.pads} {top}"] if pads and self.pads else []
        return "".join(f"{line}\n" for line in lines)

    def cell_cost(self, kind: str) -> Cost | None:
        """Return the cost of a cell of the type `kind`; None for an unknown type."""
        for price, patterns in self.cells.items():
            if any(fnmatchcase(kind, pattern) for pattern in patterns.split()):
                return price
        return None


def count_ice40_cells(module: dict[str, Any]) -> Cost:
    """Count the iCE40 logic cells that the LUTs, flip-flops and carry bits of a module fill."""
    cells = module["cells"].values()
    readers: dict[object, int] = {}
    for cell in cells:
        for port, direction in cell["port_directions"].items():
            if direction == "input":
                for bit in cell["connections"][port]:
                    readers[bit] = readers.get(bit, 0) + 1
    for port in module["ports"].values():
        for bit in port["bits"]:
            readers[bit] = readers.get(bit, 0) + 1
    tables = [c["connections"] for c in cells if c["type"] == "SB_LUT4"]
    outputs = {t["O"][0] for t in tables if readers.get(t["O"][0]) == 1}
    alone: int = sum(
        c["type"].startswith("SB_DFF") and c["connections"]["D"][0] not in outputs for c in cells
    )
    operands = {(t["I1"][0], t["I2"][0]) for t in tables}
    chained: int = sum(
        (c["connections"]["I0"][0], c["connections"]["I1"][0]) not in operands
        for c in cells
        if c["type"] == "SB_CARRY"
    )
    return Cost(cells=len(tables) + alone + chained)


def count_dual_luts(module: dict[str, Any]) -> Cost:
    """Count the LUTs that a module fills if two of five inputs together share a LUT6.

    A LUT6 of Xilinx has two outputs, each a function of the same five inputs. Pairs are found one
    by one, those with the most common inputs first, so that the count is an upper bound. LUTs that
    are memory are not counted.
    """
    alone, small = 0, list[frozenset[Any]]()
    for cell in module["cells"].values():
        if not fnmatchcase(cell["type"], "LUT[1-6]") and cell["type"] != "INV":
            continue
        nets = {bits[0] for port, bits in cell["connections"].items() if port.startswith("I")}
        inputs = frozenset(net for net in nets if isinstance(net, int))
        if len(inputs) <= _DUAL_INPUTS:
            small.append(inputs)
        else:
            alone += 1
    free, pairs = set(range(len(small))), 0
    readers: dict[Any, list[int]] = {}
    for number, inputs in enumerate(small):
        for net in inputs:
            readers.setdefault(net, []).append(number)
    for number in sorted(free, key=lambda k: -len(small[k])):
        if number not in free:
            continue
        free.remove(number)
        shared = Counter(k for net in small[number] for k in readers[net] if k in free)
        for other, _ in shared.most_common():
            if len(small[number] | small[other]) <= _DUAL_INPUTS:
                pairs += 1
                free.remove(other)
                break
    return Cost(cells=alone + len(small) - pairs)


#: Inputs that the two functions of a LUT6 of Xilinx have together.
_DUAL_INPUTS = 5

#: Halves of an ALM that each Cyclone V cell takes, at most. Two LUTs of up to four inputs share an
#: ALM. So do two LUTs of five inputs with two inputs in common, which is not counted on. An MLAB of
#: ten ALMs has 20 bits a word.
_ALM_HALVES = {
    "MISTRAL_ALUT6": 2,
    "MISTRAL_ALUT5": 2,
    "MISTRAL_ALUT4": 1,
    "MISTRAL_ALUT3": 1,
    "MISTRAL_ALUT2": 1,
    "MISTRAL_ALUT_ARITH": 1,
    "MISTRAL_NOT": 1,
    "MISTRAL_MLAB": 1,
}

#: Flip-flops of an ALM.
_ALM_FLIP_FLOPS = 4


def count_alms(module: dict[str, Any]) -> Cost:
    """Count the Cyclone V ALMs that a module fills at most."""
    kinds = Counter(cell["type"] for cell in module["cells"].values())
    halves = sum(size * kinds[kind] for kind, size in _ALM_HALVES.items())
    return Cost(cells=max(-(-halves // 2), -(-kinds["MISTRAL_FF"] // _ALM_FLIP_FLOPS)))
