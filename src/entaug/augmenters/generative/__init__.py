"""Augmentation methods that train a language model on the corpus."""
