"""Parameters and their constraints, registries of named things, presets."""
