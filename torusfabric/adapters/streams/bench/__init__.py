"""The emitted bench of streams, and the packets that simulations have in common with it."""
