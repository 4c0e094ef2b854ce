"""Reading and writing files: streams, locks, atomic outputs, checkpoints."""
