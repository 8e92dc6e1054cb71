"""Shared code of the example applications."""
