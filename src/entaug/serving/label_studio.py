"""Label Studio: what a labelling configuration says, and the parts of its API that training needs."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

from entaug.errors import InputError, one_line
from entaug.formats.label_studio import LabelStudioDialect

KEY_VARIABLE = "LABEL_STUDIO_API_KEY"
"""The environment variable with the key, as other ML backends call it."""
_TIMEOUT = 120.0  # seconds: exports of large projects take a while
_MOST_DIGITS = 18  # of a number of a project
_BATCH = 200  # predictions in one request


@dataclass(frozen=True)
class LabelingConfig:
    """The text and the labels of a project.

    Args:
        dialect: the names of text and labels in tasks and results.
        labels: what results call each label, by the label: its alias, or itself.
    """

    dialect: LabelStudioDialect
    labels: Mapping[str, str]


def parse_config(xml: str) -> LabelingConfig:
    """Read a labelling configuration, which must have one ``<Labels>`` for a ``<Text>``."""
    remedy = "use the template Named Entity Recognition"
    if "<!" in xml.replace("<!--", ""):
        raise InputError("the labelling configuration declares entities", remedy=remedy)
    try:
        root = ET.fromstring(xml)  # noqa: S314 - there are no declarations of entities
    except ET.ParseError as error:
        raise InputError(f"the labelling configuration is not XML ({error})", remedy=remedy) from None
    texts = {element.get("name"): element.get("value", "") for element in root.iter("Text")}
    found = [element for element in root.iter("Labels") if element.get("toName") in texts]
    if len(found) != 1:
        what = f"the labelling configuration has {len(found)} <Labels> for a <Text>, and one is needed"
        raise InputError(what, remedy=remedy)
    [element] = found
    to_name = str(element.get("toName"))
    values = {str(label.get("value")): str(label.get("alias") or label.get("value")) for label in element.iter("Label")}
    if not values:
        raise InputError("the labelling configuration has no <Label>", remedy="add the labels of the tagger")
    dialect = LabelStudioDialect(
        text_key=texts[to_name].lstrip("$"),
        from_name=element.get("name") or "label",
        to_name=to_name,
        offsets="characters",
        misaligned="cut",
    )
    return LabelingConfig(dialect, values)


@dataclass
class LabelStudio:
    """A server of Label Studio, and the access token of a user: a personal one, or a legacy one."""

    url: str
    key: str = field(repr=False)

    def export(self, project: int) -> list[dict[str, Any]]:
        """Return all tasks with their annotations."""
        tasks = self._call("GET", f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true")
        if not isinstance(tasks, list):
            raise InputError("sent no list of tasks", path=self.url, remedy="check that this is Label Studio")
        return tasks

    def project(self, project: int) -> Mapping[str, Any]:
        """Return what there is to know of a project."""
        values = self._call("GET", f"/api/projects/{project}/")
        if not isinstance(values, dict):
            raise InputError("sent no project", path=self.url, remedy="check that this is Label Studio")
        return values

    def send_predictions(self, project: int, predictions: Sequence[Mapping[str, Any]]) -> None:
        """Store predictions."""
        for start in range(0, len(predictions), _BATCH):
            self._call("POST", f"/api/projects/{project}/import/predictions", predictions[start : start + _BATCH])

    def show_version(self, project: int, version: str) -> None:
        """Let a project show the predictions of a version, and order tasks by them."""
        self._call("PATCH", f"/api/projects/{project}/", {"model_version": version})

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self._request(method, path, body, self._authorization())

    def _authorization(self) -> str:
        if self.key.count(".") != 2:
            return f"Token {self.key}"
        # A personal access token: a JSON web token that only gives tokens of a few minutes.
        return f"Bearer {self._request('POST', '/api/token/refresh/', {'refresh': self.key})['access']}"

    def _request(self, method: str, path: str, body: Any, authorization: str | None = None) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorization:
            headers["Authorization"] = authorization
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url.rstrip("/") + path, data, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:  # noqa: S310 - a user's address
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            said = one_line(error.read(1000).decode("utf-8", "replace"))
            remedy = f"check {KEY_VARIABLE}" if error.code in (401, 403) else None
            message = f"answered {error.code} to {method} {path.partition('?')[0]}: {said}"
            raise InputError(message, path=self.url, remedy=remedy) from None
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot be reached ({one_line(error)})", path=self.url, remedy="check that it runs"
            ) from None


def project_number(project: Any) -> int:
    """The number of a project, which is sent as ``"3.1700000000"``, with the time when it was made, or as an object."""
    if isinstance(project, Mapping):
        project = project.get("id")
    head = str(project).partition(".")[0]
    if not head.isdecimal() or len(head) > _MOST_DIGITS:
        raise InputError(f"no number of a project: {project!r:.60}", remedy="connect from a project of Label Studio")
    return int(head)


def annotated_tasks(tasks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The tasks that somebody has annotated, as an annotation that was not cancelled shows."""
    for task in tasks:
        if any(not annotation.get("was_cancelled") for annotation in task.get("annotations") or ()):
            yield task
