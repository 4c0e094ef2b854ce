"""Reports on experiments and augmented corpora."""
