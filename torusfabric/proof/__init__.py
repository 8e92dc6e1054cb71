"""Formal proof that the emitted Verilog of a fabric delivers the right words, for all data.

A proof has three kinds of steps, from small to whole:

- Comparison: wires, ROMs and the structure of modules agree with the netlist (`wiring`, `roms`,
  `routers`, `alike`).
- Induction over time: operators, links and bus modules satisfy their assertions for all inputs, as
  Yosys and an SMT solver show (`model`, `solver`, `units`).
- Symbolic execution: every run, that is, every choice of mode, length, root and operator, is
  executed on the gates of the whole fabric, with symbols in place of data (`whole`, `runs`,
  `machine`).

The *netlist* is the plan from which the Verilog is written: the modules of a fabric, their
instances and the nets between them. The *top* is the outermost module.
"""

from .prove import prove
from .report import Counterexample, ModuleProof, Proof

__all__ = ["Counterexample", "ModuleProof", "Proof", "prove"]
