"""Synthesis of a fabric: its cost on an FPGA, and its clock rate.

The users are the commands ``synth`` and ``sweep``, and `torusfabric.synthesize`. Modules in the
order in which a reader needs them:

================== ====================================================================
module             content
================== ====================================================================
``family``         `Cost` of a netlist, and `Family`: cells and tools of similar devices
``families``       all families
``target``         `Target`: a device with its capacity
``flow``           `Flow`: runs of yosys and nextpnr on one module, with cached results
``wrappers``       Verilog around modules: a harness for place and route, ROMs
``nextpnr``        logs and reports of nextpnr
``lut_purposes``   LUTs of a router by purpose
``full_crossbar``  the router that a report compares with
``memory_choice``  choice between LUTs and block RAMs for memories
``synthesize``     all of the above on a whole fabric
``report``         `SynthesisReport`
``by_mode``        costs of a fabric for several collectives, mode by mode
================== ====================================================================
"""
