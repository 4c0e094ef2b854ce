"""Augmentation methods based on dependency and constituency trees."""
