"""The server of `entaug serve`, asked as Label Studio asks, with an annotation tool that the tests play."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.backends.compute import compute_settings, use_compute_settings
from entaug.commands.main import build_parser
from entaug.commands.output import set_parser, with_options
from entaug.commands.serve import serve
from entaug.errors import InputError, OutputError, ParameterError
from entaug.serving.label_studio import KEY_VARIABLE, LabelStudio, parse_config, project_number
from entaug.serving.server import MAX_BODY, AnnotationServer
from entaug.serving.service import AnnotationService, ServiceOptions, _TaggerSpec
from entaug.serving.versions import MORE, Version, Versions
from entaug.taggers.base import TaggerTrainingConfig, create_tagger, overlap_of, write_config
from helpers.counting import wait_until

pytestmark = pytest.mark.usefixtures("one_thread")

LABELS = ("person", "place", "organisation")
CONFIG = """<View>
  <Labels name="ner" toName="words">{}</Labels>
  <Text name="words" value="$sentence"/>
</View>"""


def config(*labels: str) -> str:
    return CONFIG.format("".join(f'<Label value="{label}"/>' for label in labels))


def task(number: int, sentence: Sentence, *, annotated: bool = False) -> dict[str, Any]:
    """A task as Label Studio exports it."""
    text, starts, position = "", [], 0
    for token in sentence.tokens:
        starts.append(position)
        position += len(token) + 1
    text = " ".join(sentence.tokens)
    regions = []
    for mention in sentence.mentions:
        start, end = starts[mention.start], starts[mention.end - 1] + len(sentence.tokens[mention.end - 1])
        value = {"start": start, "end": end, "text": text[start:end], "labels": [mention.label]}
        regions.append({"from_name": "ner", "to_name": "words", "type": "labels", "value": value})
    annotations = [{"result": regions}] if annotated else []
    return {"id": number, "data": {"sentence": text}, "annotations": annotations, "predictions": []}


@dataclass
class Studio(LabelStudio):
    """Label Studio without HTTP: what a test says that there is, and what was sent to it."""

    url: str = "http://studio"
    key: str = "key"
    tasks: list[dict[str, Any]] = field(default_factory=list)
    xml: str = ""
    version: str = "the title"
    sent: list[list[Any]] = field(default_factory=list)

    def export(self, project: int) -> list[dict[str, Any]]:
        return self.tasks

    def project(self, project: int) -> dict[str, Any]:
        number = sum(bool(one["annotations"]) for one in self.tasks)
        return {"num_tasks_with_annotations": number, "label_config": self.xml, "model_version": self.version}

    def send_predictions(self, project: int, predictions: Any) -> None:
        self.sent.append(list(predictions))

    def show_version(self, project: int, version: str) -> None:
        self.version = version


@pytest.fixture(scope="module")
def gold() -> list[Sentence]:
    return [Sentence(s.tokens, s.mentions) for s in entaug.read(EXAMPLE / "train.conll")]


@pytest.fixture(scope="module")
def labels(gold: list[Sentence]) -> list[str]:
    return sorted({mention.label for sentence in gold for mention in sentence.mentions})


@pytest.fixture(scope="module")
def tagger(gold: list[Sentence], bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tagger") / "first"
    tagger = create_tagger("linear", encoder=str(bert))
    config = TaggerTrainingConfig(steps=150, learning_rate=2e-3, head_learning_rate=1e-2)
    tagger.fit(gold, config=config)
    tagger.save(folder)
    return folder


@pytest.fixture
def spec(bert: Path) -> str:
    """A tagger that is trained in a moment."""
    return f"linear:encoder={bert};steps=2"


@contextmanager
def serving(service: AnnotationService, **options: Any) -> Iterator[AnnotationServer]:
    server = AnnotationServer(service, "127.0.0.1", 0, **options)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        service.start()
        yield server
    finally:
        service.close()
        server.shutdown()
        server.server_close()


def ask(server: AnnotationServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(method, path, content, {"Content-Type": "application/json", **headers})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


# ---------------------------------------------------------------------------------------------------------- predictions


def test_predictions_stand_in_the_text_and_have_a_score_and_a_version(
    tagger: Path, tmp_path: Path, labels: list[str], gold: list[Sentence]
) -> None:
    texts = [" ".join(s.tokens) for s in gold[:8]] + ["  Two\nlines, and \U0001f600 one  more. ", "Ho.", " "]
    tasks = [{"id": n, "data": {"sentence": text, "source": "a"}} for n, text in enumerate(texts)]
    with serving(AnnotationService(tagger, tmp_path, ServiceOptions())) as server:
        status, setup = ask(server, "POST", "/setup", {"project": "7.1700000000", "schema": config(*labels)})
        assert (status, list(setup)) == (200, ["model_version"])
        status, answer = ask(
            server, "POST", "/predict", {"tasks": tasks, "label_config": config(*labels), "project": "7.1"}
        )
    assert status == 200
    assert setup["model_version"] == answer["model_version"]
    assert len(answer["results"]) == len(tasks)
    regions = [(text, region) for text, one in zip(texts, answer["results"], strict=True) for region in one["result"]]
    assert regions, "the tagger was trained on these sentences"
    for text, region in regions:
        value = region["value"]
        assert value["text"] == text[value["start"] : value["end"]]
        assert (region["from_name"], region["to_name"], region["type"]) == ("ner", "words", "labels")
        assert value["labels"][0] in labels
    scores = [one["score"] for one in answer["results"]]
    assert {one["model_version"] for one in answer["results"]} == {setup["model_version"]}
    assert all(0 < score < 1 for score in scores[:8])
    assert scores[9:] == [1.0, 1.0], "texts that suggest leaves out come last"


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("他住在北京，在一家很大的公司工作，每天坐地铁上班。", {}, ["--language zh or --train"]),  # noqa: RUF001
        ("他住在北京，在一家很大的公司工作，每天坐地铁上班。", {"language": "zh"}, []),  # noqa: RUF001
        ("He lives in Rome and works for a large company there.", {}, []),
    ],
)
def test_texts_that_are_not_in_the_language_that_is_assumed_are_told_once(
    text: str, options: dict[str, Any], told: list[str], tagger: Path, tmp_path: Path, labels: list[str]
) -> None:
    set_parser(build_parser("serve"))
    reports: list[str] = []
    service = AnnotationService(tagger, tmp_path, ServiceOptions(report=reports.append, **options))
    service.start()
    for _ in range(2):
        service.predict({"tasks": [{"id": 1, "data": {"sentence": text}}], "label_config": config(*labels)})
    service.close()
    said = "is divided into words as English is; start again with "
    parts = [with_options(report).partition(said) for report in reports]
    assert [end for _, _, end in parts] == told


def test_the_order_is_that_of_suggest(tagger: Path, tmp_path: Path, labels: list[str], gold: list[Sentence]) -> None:
    one, other = gold[0].tokens, gold[1].tokens
    texts = [" ".join(tokens) for tokens in (one, (*one, "indeed"), other)]
    tasks = [{"id": n, "data": {"sentence": text}} for n, text in enumerate(texts)]
    service = AnnotationService(tagger, tmp_path, ServiceOptions(gold=gold))
    service.start()
    results = service.predict({"tasks": tasks, "label_config": config(*labels)})["results"]
    alone = [service.predict({"tasks": [one], "label_config": config(*labels)})["results"][0] for one in tasks]
    service.close()
    kept = min((0, 1), key=lambda i: alone[i]["score"])
    assert results[kept]["score"] == alone[kept]["score"]
    assert results[1 - kept]["score"] == 1.0, "it is nearly alike, and the tagger is surer of it"
    assert results[2]["score"] == alone[2]["score"]


def test_labels_that_the_project_lacks_are_left_out(
    tagger: Path, tmp_path: Path, labels: list[str], gold: list[Sentence]
) -> None:
    told: list[str] = []
    xml = config(*labels[:1]).replace("<Label ", '<Label alias="short" ')
    tasks = [{"id": n, "data": {"sentence": " ".join(s.tokens)}} for n, s in enumerate(gold)]
    service = AnnotationService(tagger, tmp_path, ServiceOptions(report=told.append))
    service.start()
    service.setup({"project": "1.2", "schema": xml})
    results = service.predict({"tasks": tasks, "label_config": xml})["results"]
    with pytest.raises(InputError, match="none of the labels of the tagger"):
        service.setup({"project": "1.2", "schema": config("other")})
    service.close()
    assert f"left out: {', '.join(labels[1:])}" in told[0]
    assert {region["value"]["labels"][0] for one in results for region in one["result"]} == {"short"}


# ------------------------------------------------------------------------------------------------------------- refusals


def test_requests_that_are_refused(tagger: Path, tmp_path: Path, labels: list[str]) -> None:
    good = {"project": "7.17", "schema": config(*labels)}
    with serving(AnnotationService(tagger, tmp_path, ServiceOptions())) as server:
        assert ask(server, "GET", "/health")[1]["status"] == "UP"
        assert ask(server, "GET", "/")[1]["training"] is False
        assert ask(server, "POST", "/setup", good)[0] == 200
        refused = {
            ("GET", "/nothing", None): (404, "no such path"),
            ("POST", "/setup", b"{"): (400, "not JSON"),
            ("POST", "/setup", b"[]"): (400, "must be a JSON object"),
            ("POST", "/setup", b"[" * 100_000): (400, "not JSON"),
            ("POST", "/setup", b'{"project": "x"}'): (400, "no number of a project"),
            ("POST", "/setup", b'{"project": "1", "schema": "<View>"}'): (400, "not XML"),
            ("POST", "/setup", b'{"schema": "\\ud800"}'): (400, "not JSON"),
            ("POST", "/setup", b'{"project": "' + b"1" * 5000 + b'"}'): (400, "no number of a project"),
            ("POST", "/predict", b'{"tasks": 3}'): (400, "no list of tasks"),
            ("POST", "/webhook", b'{"action": "START_TRAINING"}'): (400, "cannot train"),
        }
        for (method, path, body), (status, message) in refused.items():
            got, answer = ask(server, method, path, body)
            assert (got, message in answer["error"]) == (status, True), answer
        other = ask(server, "POST", "/setup", {**good, "project": "8.17"})
        assert other[0] == 400
        assert "belongs to project 7 of Label Studio, not 8; start another server" in other[1]["error"]
        bad = {"tasks": [{"id": 5, "data": {"text": "a"}}], "label_config": config(*labels)}
        assert "task 5: no string 'sentence'" in ask(server, "POST", "/predict", bad)[1]["error"]
        assert ask(server, "POST", "/predict", bad, **{"Content-Length": str(MAX_BODY + 1)})[0] == 413
        assert ask(server, "POST", "/predict", bad, **{"Content-Length": "1" * 5000})[0] == 413
        assert ask(server, "POST", "/predict", b"{}", **{"Content-Length": "-1"})[0] == 411
        assert ask(server, "POST", "/webhook", good, **{"Content-Type": "text/plain"})[0] == 415
        assert ask(server, "POST", "/webhook", {"action": "LABEL_LINK_CREATED"}) == (201, {"status": "ok"})
        assert ask(server, "GET", "/health")[0] == 200, "it goes on"


def test_a_password(tagger: Path, tmp_path: Path) -> None:
    service = AnnotationService(tagger, tmp_path, ServiceOptions())
    with serving(service, user="me", password="geheim") as server:
        assert ask(server, "GET", "/health")[0] == 401
        right, wrong = (base64.b64encode(f"me:{word}".encode()).decode() for word in ("geheim", "geheimer"))
        assert ask(server, "GET", "/health", Authorization=f"Basic {wrong}")[0] == 401
        assert ask(server, "GET", "/health", Authorization=f"Basic {right}")[0] == 200
        assert ask(server, "POST", "/webhook", {"action": "TASKS_CREATED"})[0] == 201


def test_a_tagger_that_cannot_be_trained_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = tmp_path / "names.txt"
    names.write_text("Ada\n")
    with pytest.raises(ParameterError, match=r"names\.txt=PER is not trained, and a server trains taggers"):
        AnnotationService(f"lists:{names}=PER", tmp_path, ServiceOptions())
    write_config(tmp_path, {"tagger": "onnx", "params": {}})
    monkeypatch.setattr("entaug.serving.service.load_tagger", lambda _: object())
    with pytest.raises(ParameterError, match="holds an exported tagger, which is not trained"):
        AnnotationService(tmp_path, tmp_path, ServiceOptions(studio=Studio()))
    AnnotationService(tmp_path, tmp_path, ServiceOptions())


@pytest.mark.parametrize("key", ["geheim\nx", "schlüssel"])
def test_a_key_with_odd_characters_is_refused_without_repeating_it(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(ParameterError, match=KEY_VARIABLE) as caught:
        serve("linear", tmp_path, label_studio="http://localhost:1")
    assert key not in str(caught.value)


def test_a_port_that_is_taken(tagger: Path, tmp_path: Path) -> None:
    service = AnnotationService(tagger, tmp_path, ServiceOptions())
    with serving(service) as server, pytest.raises(OutputError, match="cannot listen"):
        AnnotationServer(service, "127.0.0.1", server.server_address[1])


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("<View/>", "has 0 <Labels>"),
        (
            '<View><HyperText name="t" value="$t"/><Labels name="l" toName="t"><Label value="A"/></Labels></View>',
            "has 0",
        ),
        ('<View><Text name="t" value="$t"/><Labels name="l" toName="t"/></View>', "has no <Label>"),
        ('<!DOCTYPE v [<!ENTITY a "b">]><View/>', "declares entities"),
    ],
)
def test_configurations_that_are_refused(xml: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_config(xml)


def test_numbers_of_projects() -> None:
    assert [project_number(one) for one in ("3.1700000000", 3, {"id": 3, "title": "a"})] == [3, 3, 3]


# ------------------------------------------------------------------------------------------------------------- training


def test_annotations_are_learnt_and_outlive_the_server(
    spec: str, tmp_path: Path, labels: list[str], gold: list[Sentence]
) -> None:
    told: list[str] = []
    studio = Studio(tasks=[task(n, s) for n, s in enumerate(gold[:12])], xml=config(*labels))
    options = ServiceOptions(studio=studio, dev=gold[12:20], every=4, report=told.append)
    setup = {"project": {"id": 1}, "schema": config(*labels)}
    with serving(AnnotationService(spec, tmp_path, options)) as server:
        assert ask(server, "POST", "/setup", setup) == (200, {"model_version": ""})
        predicting = {"tasks": studio.tasks[:2], "label_config": config(*labels)}
        assert ask(server, "POST", "/predict", predicting)[0] == 503
        for n in range(4):
            studio.tasks[n] = task(n, gold[n], annotated=True)
            assert ask(server, "POST", "/webhook", {"action": "ANNOTATION_CREATED"})[0] == 201
        wait_until(lambda: studio.version.startswith("entaug-1-"))
        version = studio.version
        assert [one["task"] for one in studio.sent[0]] == list(range(4, 12)), "those that are not annotated"
        assert ask(server, "POST", "/predict", predicting)[1]["model_version"] == version
        health = ask(server, "GET", "/health")[1]
        assert (health["model_version"], health["sentences"]) == (version, 4)
        assert health["advice"].startswith("F1 ")
        # Fewer than four new ones: only when it is asked for.
        studio.tasks[4] = task(4, gold[4], annotated=True)
        ask(server, "POST", "/webhook", {"action": "ANNOTATION_CREATED"})
        ask(server, "POST", "/webhook", {"action": "START_TRAINING"})
        wait_until(lambda: studio.version.startswith("entaug-2-"))
        second = studio.version
        assert f"{MORE} more would bring" in ask(server, "GET", "/")[1]["advice"]
        ask(server, "POST", "/webhook", {"action": "START_TRAINING"})
        wait_until(lambda: "nothing was annotated since the latest training" in told)
    with serving(AnnotationService(spec, tmp_path, options)) as server:
        assert ask(server, "POST", "/setup", setup) == (200, {"model_version": second})
        studio.tasks.append(task(20, gold[20]))
        ask(server, "POST", "/webhook", {"action": "TASKS_CREATED"})
        wait_until(lambda: len(studio.sent) == 3)
        assert [one["task"] for one in studio.sent[2]] == [20], "the others have theirs"


def test_gold_sentences_train_the_first_tagger(spec: str, tmp_path: Path, gold: list[Sentence]) -> None:
    service = AnnotationService(spec, tmp_path, ServiceOptions(gold=gold))
    service.start()
    wait_until(lambda: service.model_version)
    service.close()
    assert [version.sentences for version in Versions(tmp_path)._all] == [len(gold)]


def test_what_is_annotated_is_read_as_it_was_meant(tagger: Path, tmp_path: Path, gold: list[Sentence]) -> None:
    service = AnnotationService(tagger, tmp_path, ServiceOptions(gold=gold))
    xml = parse_config(config("person").replace("<Label ", '<Label alias="P" '))
    value = {"start": 1, "end": 4, "text": "Ada", "labels": ["P"]}
    region = {"from_name": "ner", "to_name": "words", "type": "labels", "value": value}
    choice = {"from_name": "c", "to_name": "words", "type": "choices", "value": {"choices": ["good"]}}
    kept = {"id": 1, "data": {"sentence": " Ada's book"}, "annotations": [{"result": [region, choice]}]}
    [sentence] = service._annotated([kept], xml)
    assert sentence.mention_tokens(sentence.mentions[0]) == ("Ada",)
    assert sentence.mentions[0].label == "person"
    assert service._annotated([], xml) == []


def test_a_training_that_fails_is_reported_and_serving_goes_on(
    tagger: Path, tmp_path: Path, labels: list[str], gold: list[Sentence]
) -> None:
    told: list[str] = []
    empty = [task(n, Sentence(s.tokens), annotated=True) for n, s in enumerate(gold[:3])]
    options = ServiceOptions(studio=Studio(tasks=empty, xml=config(*labels)), every=1, report=told.append)
    with serving(AnnotationService(tagger, tmp_path, options)) as server:
        ask(server, "POST", "/setup", {"project": "1.2", "schema": config(*labels)})
        wait_until(lambda: ask(server, "GET", "/health")[1]["failure"])
        assert "there is no mention to learn from" in ask(server, "GET", "/health")[1]["failure"]
        predicting = {"tasks": empty, "label_config": config(*labels)}
        assert ask(server, "POST", "/predict", predicting)[0] == 200
    assert any(line.startswith("failed: ") for line in told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project.json"], "nothing half-written"


@pytest.mark.parametrize("unanswered", ["project", "export"])
def test_the_wish_to_train_waits_for_label_studio(
    unanswered: str, tmp_path: Path, labels: list[str], gold: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []
    asked: list[int] = []

    class Counting(Studio):
        def project(self, project: int) -> dict[str, Any]:
            asked.append(project)
            return super().project(project)

    studio = Counting(tasks=[task(0, gold[0], annotated=True)], xml=config(*labels))
    monkeypatch.setattr("entaug.serving.service._TaggerSpec.of", lambda _: (_TaggerSpec("linear"), None))
    service = AnnotationService("linear", tmp_path, ServiceOptions(studio=studio))
    monkeypatch.setattr(service, "_train", lambda sentences, *_: trained.append(len(sentences)))
    answer = getattr(studio, unanswered)

    def refuse(_: int) -> Any:
        raise InputError("cannot be reached")

    with serving(service) as server:
        ask(server, "POST", "/setup", {"project": "1.2", "schema": config(*labels)})
        wait_until(lambda: asked)  # because of the setup; what follows is because of the wish
        monkeypatch.setattr(studio, unanswered, refuse)
        ask(server, "POST", "/webhook", {"action": "START_TRAINING"})
        wait_until(lambda: service.failure)
        monkeypatch.setattr(studio, unanswered, answer)
        assert not trained
        ask(server, "POST", "/webhook", {"action": "ANNOTATION_CREATED"})
        wait_until(lambda: trained)
    assert trained == [1]


def test_settings_of_the_caller_hold_in_requests_and_in_training(
    tagger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def see(where: str) -> dict[str, Any]:
        seen[where] = compute_settings().any_language
        return {}

    with use_compute_settings(any_language=True):
        service = AnnotationService(tagger, tmp_path, ServiceOptions())
    monkeypatch.setattr(service, "status", lambda: see("request"))
    monkeypatch.setattr(service, "_work_once", lambda **_: see("training"))
    with serving(service) as server:
        ask(server, "GET", "/health")
        service.train()
        wait_until(lambda: len(seen) == 2)
    assert seen == {"request": True, "training": True}


@pytest.mark.parametrize("text", ["linear", "bilstm-crf:steps=7", "ensemble:size=2;steps=7"])
def test_a_flat_tagger_learns_the_outer_one_of_overlapping_regions(text: str) -> None:
    nested = Sentence("Bank of Rome".split(), [Mention("ORG", [(0, 3)]), Mention("LOC", [(2, 3)])])
    flat = nested.with_(mentions=nested.mentions[:1])
    for sentences, overlap in (([flat, nested], "outermost"), ([flat], "error")):
        made = _TaggerSpec(text).for_sentences(sentences).create()
        assert overlap_of(made.tagger.name if ":" in text else made.name, made.get_params()) == overlap
        if ":" in text:
            assert made.config.steps == 7


def test_other_taggers_of_overlapping_regions_stay_as_they_are() -> None:
    nested = Sentence("Bank of Rome".split(), [Mention("ORG", [(0, 3)]), Mention("LOC", [(2, 3)])])
    for spec in (_TaggerSpec("w2ner:steps=7"), _TaggerSpec(name="linear", params={"overlap": "innermost"})):
        assert spec.for_sentences([nested]).create().get_params() == spec.create().get_params()


def test_a_server_that_ends_ends_its_training(bert: Path, tmp_path: Path, gold: list[Sentence]) -> None:
    slow = f"linear:encoder={bert};steps=1000000"
    service = AnnotationService(slow, tmp_path, ServiceOptions(gold=gold))
    service.start()
    wait_until(lambda: service.is_training)
    service.close()
    assert not service.is_training
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_address_of_six_parts() -> None:
    service: Any = None
    try:
        server = AnnotationServer(service, "::1", 0)
    except OutputError as error:
        pytest.skip(str(error))
    with server:
        assert server.url == f"http://[::1]:{server.server_address[1]}"


# --------------------------------------------------------------------------------------------------------------- advice


def versions(folder: Path, *counts: tuple[int, int]) -> Versions:
    """Versions with a number of sentences and of correct mentions in twenty dev sentences of ten mentions each."""
    found = Versions(folder)
    for sentences, correct in counts:
        (folder / "new").mkdir(parents=True)
        rows = [[correct // 20 + (i < correct % 20), 10, 10] for i in range(20)]
        version = Version(
            number=found.next_number(), sentences=sentences, tasks=0, digest=f"{sentences:016x}", dev="d", counts=rows
        )
        found.add(version, folder / "new")
    return found


def test_advice_goes_on_with_the_curve(tmp_path: Path) -> None:
    assert versions(tmp_path / "none").advice() == ""
    assert "the next training shows" in versions(tmp_path / "one", (50, 80)).advice()
    steep = versions(tmp_path / "steep", (50, 80), (100, 120))
    assert steep.advice().startswith(f"F1 60.0 with 100 sentences; {MORE} more would bring +")
    assert "enough" not in steep.advice()
    flat = versions(tmp_path / "flat", (2000, 190), (4000, 190), (8000, 190))
    assert flat.advice().endswith(": enough is annotated")
    assert Versions(tmp_path / "flat").advice() == flat.advice(), "as read from the folder"
    single = Versions(tmp_path / "single")
    for number in (1, 2):
        (tmp_path / "new").mkdir()
        values: Any = {"sentences": 50 * number, "tasks": 0, "digest": f"{number:016x}", "dev": "d"}
        single.add(Version(number=number, counts=[[1, 1, 1]], **values), tmp_path / "new")
    assert single.advice() == "F1 100.0 with 100 sentences", "one dev sentence gives no curve"


def test_old_taggers_are_removed_and_their_scores_stay(tmp_path: Path) -> None:
    found = versions(tmp_path, (10, 20), (20, 30), (30, 40), (40, 50), (50, 60))
    assert [found.tagger_folder(version).exists() for version in found._all] == [False, False, True, True, True]
    assert [version.sentences for version in Versions(tmp_path)._all] == [10, 20, 30, 40, 50]
    (tmp_path / "0005" / "version.json").write_text("{")
    with pytest.raises(InputError, match="is not a record of a version"):
        Versions(tmp_path)
