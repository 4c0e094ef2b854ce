"""Machine translation."""
