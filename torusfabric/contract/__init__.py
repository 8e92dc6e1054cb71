"""What the core and its adapters declare to each other: frozen values, and no hardware."""
