"""Algorithms that plan collectives: a folder for each family, and the catalogue of all."""

from .algorithm import Algorithm, Options
from .catalogue import CATALOGUE, Catalogue, choose_algorithm, find_algorithm, register_algorithm

__all__ = ["CATALOGUE", "Algorithm", "Catalogue", "Options", "choose_algorithm", "find_algorithm",
           "register_algorithm"]  # fmt: skip
