"""Language models, encoders and their training on PyTorch and transformers."""
