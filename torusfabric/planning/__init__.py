"""From a selection to a checked schedule and a compiled program: the one such chain."""
