"""Lets ``python -m torusfabric`` do what ``torusfabric`` does."""

import sys

from .cli import main

sys.exit(main())
