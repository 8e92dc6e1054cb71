"""The bus adapter: a fabric behind Wishbone, AXI4-Lite or AXI4, with registers and windows.

Registers start runs and show their state. A *window* is a range of bus addresses through which a
processor reads or writes the memories of all nodes. With the top ``host`` the bus replaces the
host port. With the top ``stream`` it replaces the ports that start runs, and there are no windows,
because data pass through the streams::

    processor -> bridge -> Registers ---------> host port, start, busy, ..  -> core
                 AXI4 bursts -> Windows ------> host port

In this package, a *flit* of a window is one word of the host port: `width` times `beat` bits. A
*bus word* has 32 bits; a wider flit consists of several bus words. An *access* is a read or a write
of one bus word. The *master* is the processor, or the circuit, that makes accesses.

Modules, in reading order:

============ ==================================================================================
options      the buses, and the option ``--bus``
ports        the ports of each bus
register_map the addresses of registers and windows
front        the hardware, put before the ports of another adapter (its *front*)
bridges      translation of Wishbone or AXI4-Lite transfers into single accesses
registers    execution of single accesses, by registers and the host port
windows      execution of AXI4 bursts, by the host port
interface    declarations for manifest, files, test bench and proof
system_rdl   the register map for other tools
claims       proof that a bridge answers each request once
============ ==================================================================================
"""
