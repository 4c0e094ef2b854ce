"""Taggers of other libraries, used as they are: spaCy, Hugging Face and GLiNER."""
