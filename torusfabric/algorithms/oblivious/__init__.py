"""Collectives by fixed forwarding: every router forwards in the same way in all steps."""
