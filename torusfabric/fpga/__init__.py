"""From Verilog text to a synthesis report, a bitstream, and a board."""
