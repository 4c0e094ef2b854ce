"""The catalogue of starter models and how they are installed."""
