"""Harnesses that all fabrics with streams have in common."""
