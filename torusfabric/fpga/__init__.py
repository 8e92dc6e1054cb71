"""From Verilog to hardware: synthesis reports, bitstreams, and fabrics on boards."""
