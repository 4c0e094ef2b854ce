"""CASSI: augmentation by exchanging dependency subtrees between sentences."""
