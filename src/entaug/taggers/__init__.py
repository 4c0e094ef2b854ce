"""The models that augmentation is judged with: a body that gives word vectors, and a head that finds mentions."""
