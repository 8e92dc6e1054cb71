"""Analysis of schedules: proof of correctness, lower bounds, cost models, and use of links."""
