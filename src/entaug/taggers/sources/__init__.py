"""Sources of labels, and the tagger that joins them."""
