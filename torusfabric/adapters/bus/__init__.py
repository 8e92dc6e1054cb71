"""The bus adapter: a fabric behind Wishbone, AXI4-Lite or AXI4, with registers and windows.

A *window* is a range of bus addresses that maps the memories of the nodes. Registers start runs and
show their state. The adapter stands in front of a host port, or, with the stream top, in front of
the ports for runs; it has no windows then. Modules, in reading order:

============ ==================================================================================
options      the buses, and the option ``--bus``
ports        the ports of each bus
register_map the addresses of registers and windows
front        the hardware, assembled in front of another front
bridges      translation of Wishbone or AXI4-Lite transfers into single accesses
registers    execution of single accesses, by registers and the host port
windows      execution of AXI4 bursts, by the host port
interface    declarations for manifest, files, test bench and proof
system_rdl   the register map for other tools
claims       proof that a bridge answers each request once
============ ==================================================================================
"""
