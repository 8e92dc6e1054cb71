"""An adapter: the registers and windows of a fabric behind APB4 (AMBA). CONTRIBUTING shows it."""
