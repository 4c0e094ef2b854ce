"""Recipes of augmentation, and the choice of one for a corpus by cross-validation (``entaug auto``)."""
