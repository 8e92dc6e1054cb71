"""An adapter by the recipe in CONTRIBUTING: a fabric behind APB4 (AMBA), registers and windows."""
