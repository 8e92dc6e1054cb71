"""Fabrics with their adapters."""
