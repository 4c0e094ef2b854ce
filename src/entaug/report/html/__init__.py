"""Reports as one page of HTML: methods and their quality, plots, results of experiments, and examples to review.

Decisions of a reviewer (accept, reject) are exported for the option ``--apply-review`` of ``entaug filter`` and
``entaug augment``, and those about suspicious labels for ``entaug audit``.
"""
