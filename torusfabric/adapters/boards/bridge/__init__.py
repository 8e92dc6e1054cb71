"""Boards behind bridges: all of them, run together."""
