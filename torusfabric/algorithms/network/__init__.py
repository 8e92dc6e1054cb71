"""Collectives on any network."""
