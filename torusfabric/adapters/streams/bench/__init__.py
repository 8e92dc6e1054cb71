"""The emitted cocotb bench of streams, and the packets that it shares with simulations."""
