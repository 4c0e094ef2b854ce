"""``entaug serve``: label the tasks of Label Studio, and train anew as they are annotated."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from entaug.backends.resolve import is_alias
from entaug.commands.command import Command, Summary
from entaug.commands.options import COMPUTING
from entaug.commands.output import print_message
from entaug.config.params import Check, PositiveInt, check_arguments
from entaug.core.progress import no_progress
from entaug.errors import OutputError, ParameterError
from entaug.files.atomic import make_folder
from entaug.files.locks import claim
from entaug.formats import read
from entaug.formats.file_job import require_mentions

PASSWORD_VARIABLE = "ENTAUG_SERVE_PASSWORD"  # noqa: S105 - its name
"""The environment variable with the password that clients must give."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

Port = Annotated[int, Check(lambda port: type(port) is int and 0 <= port < 1 << 16, "a port, 0 for one that is free")]


@dataclass
class ServeSummary(Summary):
    """Result of `serve`."""

    url: str
    model_version: str
    advice: str

    def lines(self) -> Iterator[str]:
        yield f"stopped; the latest tagger is {self.model_version or 'not trained yet'}"
        if self.advice:
            yield self.advice


def serve(
    tagger: str | Path,
    output: str | Path,
    *,
    train: str | Path | None = None,
    dev: str | Path | None = None,
    label_studio: str | None = None,
    every: PositiveInt = 50,
    split: Literal["none", "lines", "sentences"] = "none",
    language: str | None = None,
    host: str = "127.0.0.1",
    port: Port = 9090,
    user: str = "entaug",
    report: Callable[[str], None] = lambda _: None,
) -> ServeSummary:
    """Label the tasks of a project in Label Studio, and train anew as they are annotated, until Ctrl-C.

    Connect it in Label Studio under Settings, Model. Predictions have the score by which `entaug.suggest` orders
    sentences, so that Label Studio gives annotators the tasks first that the tagger is least sure of. After each
    training the server sends predictions for all tasks that are not annotated yet. Taggers are kept in the folder of
    the output, from which a server that is started again goes on; one folder belongs to one project.

    The key of a user of Label Studio is taken from the environment variable LABEL_STUDIO_API_KEY; without it the server
    only predicts. With ENTAUG_SERVE_PASSWORD, Label Studio must give a user name and this password (basic
    authentication).

    Args:
        tagger: the folder of a trained tagger; or the name of one with its parameters, such as ``"linear:steps=300"``,
            which is trained first.
        output: the folder in which trained taggers are kept.
        train: training sentences besides those that are annotated; running text is tokenised as they are.
        dev: labelled sentences that each tagger is tested on, for advice on when to stop.
        label_studio: the address of Label Studio, such as ``"http://localhost:8080"``.
        every: after how many newly annotated tasks a tagger is trained.
        split: ``"none"``: the text of a task is one sentence; ``"lines"``: each line is one; ``"sentences"``: sentences
            are detected.
        language: the language of the texts; None for that of the training sentences, or English.
        host: the address to listen at; others than that of this machine can be reached by others.
        port: the port.
        user: the user name, where there is a password.
        report: called with what happens.

    Returns:
        What was served last.

    Raises:
        InputError: there is no tagger in the folder, or a file is invalid.
        OutputError: the folder cannot be written or another server uses it, or the port is taken.
        ParameterError: an argument is invalid, or the key or the training sentences of a trained
            tagger are missing.

    Example:
        >>> serve("linear", "server", every=0)
        Traceback (most recent call last):
        ...
        entaug.errors.ParameterError: every must be an integer of at least 1, not 0
    """
    from entaug.backends.chat.settings import key_variable
    from entaug.serving.label_studio import KEY_VARIABLE, LabelStudio
    from entaug.serving.server import AnnotationServer
    from entaug.serving.service import AnnotationService, ServiceOptions

    check_arguments(serve, {"every": every, "split": split, "port": port})
    studio = None
    if label_studio is not None:
        if not label_studio.startswith(("http://", "https://")):
            raise ParameterError(f"{label_studio!r} is no address", remedy="for example http://localhost:8080")
        key = key_variable(KEY_VARIABLE)
        if key is None:
            remedy = f"set {KEY_VARIABLE} to an access token from the account page of Label Studio"
            raise ParameterError("the key of Label Studio is not given", remedy=remedy)
        studio = LabelStudio(label_studio, key)
    if studio is not None and train is None and not is_alias("tagger", str(tagger)):
        message = "the next tagger would forget what this one was trained on"
        raise ParameterError(message, remedy="name its training sentences with --train")
    gold = [] if train is None else list(read(train))
    tested = [] if dev is None else list(read(dev))
    for sentences, file in ((gold, train), (tested, dev)):
        if file is not None:
            require_mentions(sentences, file)
    folder = make_folder(output)
    if not os.access(folder, os.W_OK):
        raise OutputError("cannot be written", path=str(folder), remedy="name another folder")
    password = os.environ.get(PASSWORD_VARIABLE, "")
    options = ServiceOptions(
        gold=gold, dev=tested, studio=studio, every=every, split=split, language=language, report=report
    )
    with claim(folder), contextlib.ExitStack() as stack:
        service = AnnotationService(tagger, folder, options)
        server = AnnotationServer(service, host, port, user, password)
        stack.callback(server.server_close)
        stack.callback(service.close)
        service.start()
        report(f"listening at {server.url}")
        if host not in _LOOPBACK and not password:
            report(f"other machines can reach it without a password: set {PASSWORD_VARIABLE}")
        if studio is None:
            report("predicts only: give --label-studio to train on what is annotated")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)
        return ServeSummary(server.url, service.model_version, service.versions.advice())


COMMAND = Command(
    serve,
    {
        "output": {"required": True, "metavar": "FOLDER"},
        "label_studio": {"metavar": "URL"},
        "language": {"metavar": "CODE"},
    },
    (COMPUTING,),
    values=lambda _: {"report": print_message},
    progress=lambda **_: contextlib.nullcontext(no_progress),
)
