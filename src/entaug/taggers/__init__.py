"""Taggers: networks that learn to find mentions, to measure what augmentation is worth."""
