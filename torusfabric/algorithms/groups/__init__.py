"""Collectives among listed nodes of any network, whose data pass through any node."""
