"""Options for language models behind a server."""

from __future__ import annotations

import argparse
from typing import Any

from entaug.backends.chat.settings import RequestSettings
from entaug.commands import options

__all__ = ["add_request_options", "request_options"]


def add_request_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for models behind a server; see `request_options`."""
    group = parser.add_argument_group("language models behind a server (with --generator URL)")
    options.add_parameters(group, RequestSettings)


def request_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of requests that were given as options of any command."""
    return options.given_parameters(args, RequestSettings)
