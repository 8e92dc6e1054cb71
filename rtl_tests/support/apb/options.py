"""Options of the adapter, and options that the adapter excludes."""

from torusfabric.contract.adapter import Adapter, AdapterOptions
from torusfabric.contract.options import parse_non_negative_int

__all__ = ["ADAPTER"]

TEXT = """
--apb: put the host port behind APB4: registers, and windows onto the memories
--apb-waits N: with --apb: wait states of each access, 0 to 15 (default 0)
"""

ADAPTER = Adapter(
    name="apb",
    title="APB",
    package=__name__.rpartition(".")[0],
    options=(AdapterOptions(("verilog",), TEXT, {"apb_waits": parse_non_negative_int}),),
    excluded={"": ("top", "bus", "clocks", "tables")},
)
