"""A harness that keeps trying to break entaug: ``python -m tests.chaos --minutes 10``; see CONTRIBUTING.md."""
