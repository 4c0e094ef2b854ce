"""Training the models of other libraries on our sentences. A library is imported when it is used."""

from entaug.integrations.huggingface import SoftLabelCollator, soft_label_loss

__all__ = ["SoftLabelCollator", "soft_label_loss"]
