"""Parquet files and Hugging Face datasets."""
