"""Algorithms for any network: nothing is assumed of it but that every node reaches every other."""
