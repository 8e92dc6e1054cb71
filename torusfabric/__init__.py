"""torusfabric: switch fabrics for collective communication on torus networks."""

__all__ = ["__version__"]

__version__ = "0.1.0"
