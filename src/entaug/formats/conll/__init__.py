"""CoNLL column formats."""
