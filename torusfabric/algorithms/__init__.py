"""Algorithms that plan collectives: a folder for each family, and the catalogue of all."""

from .algorithm import Algorithm, Options
from .catalogue import CATALOGUE, Catalogue, choose, find, register

__all__ = ["CATALOGUE", "Algorithm", "Catalogue", "Options", "choose", "find", "register"]
