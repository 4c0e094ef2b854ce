"""Models behind a server, against a server whose answers and faults are scripted."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entaug.backends.chat.client import Failure, retry_delay
from entaug.backends.chat.server import AnswerCache, ChatServer, parse_address, request_key
from entaug.backends.chat.settings import request_settings, use_request_settings
from entaug.backends.compute import use_compute_settings
from entaug.backends.instruct import Answer, ChatRequest, InstructModel, Message
from entaug.backends.resolve import check_name, load_generator, resolve
from entaug.errors import EntaugError, MissingModelError, OutputError, ParameterError
from helpers.scripted_server import Reply, echo, last_line, serving

pytest.importorskip("httpx")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / "cache"))
    for name in ("ENTAUG_API_KEY", "OPENAI_API_KEY", "OPENAI_ORG_ID"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repetitions without waiting."""
    monkeypatch.setattr("entaug.backends.chat.server.retry_delay", lambda attempt, failure: 0.0)


def requests(number: int, text: str = "word") -> list[ChatRequest]:
    return [ChatRequest((Message("system", "Say."), Message("user", f"{text} {i}")), seed=i) for i in range(number)]


def test_answers_come_in_order_and_at_the_same_time() -> None:
    with serving(lambda body, before: Reply(echo(body, before).text, delay=0.05)) as server:
        model = ChatServer(f"{server.url}#tiny")
        assert isinstance(model, InstructModel)
        with use_request_settings(concurrency=5):
            answers = model.answer(requests(12))
    assert [answer.text.rsplit(" ", 1)[0] for answer in answers] == [f"word {i}" for i in range(12)]
    assert 2 <= server.most_at_once <= 5
    assert server.bodies[0]["model"] == "tiny"
    assert {"role": "system", "content": "Say."} in server.bodies[0]["messages"]
    assert (model.usage.requests, model.usage.input_tokens, model.usage.output_tokens) == (12, 120, 60)
    assert model.name == f"{server.url}#tiny"
    assert model.remote_host is None


def test_nothing_is_asked_twice_not_even_without_the_server() -> None:
    with serving() as server:
        model = ChatServer(f"{server.url}#tiny")
        first = model.answer([*requests(3), *requests(3)])
        assert len(server.bodies) == 3
    again = ChatServer(f"{server.url}#tiny")  # the server has gone
    assert again.answer(requests(3)) == first[:3] == first[3:]
    assert (again.usage.requests, again.usage.from_cache, again.usage.input_tokens) == (0, 3, 0)


FAULTS: dict[str, tuple[Reply, str]] = {
    "rate limit": (Reply("slow down", 429, {"Retry-After": "0"}), "the rate limit was exceeded (429)"),
    "server error": (Reply("oh", 500), "the server failed (500)"),
    "overload": (Reply("oh", 503), "the server failed (503)"),
    "cut": (Reply("half an answer", cut=True), "the connection broke off"),
    "nonsense": (Reply(body=b"<html>proxy</html>"), "what the server sent is not an answer"),
    "no choices": (Reply(body=b'{"id": "1", "choices": []}'), "what the server sent is not an answer"),
    "no text": (Reply(body=b'{"id": "1", "choices": [{"index": 0}]}'), "what the server sent is not an answer"),
    "a number": (Reply(body=b"17"), "what the server sent is not an answer"),
    "not UTF-8": (Reply(body=b"\xff\xfe{"), "what the server sent is not an answer"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("quick")
def test_failures_that_pass_are_repeated_and_counted(fault: str) -> None:
    reply, reason = FAULTS[fault]
    with serving(lambda body, before: echo(body, before) if before else reply) as server:
        model = ChatServer(f"{server.url}#tiny")
        with use_request_settings(retries=1):
            [answer] = model.answer(requests(1))
    assert answer.failure is None
    assert answer.text.startswith("word 0")
    assert model.usage.repeated == {reason: 1}
    assert not model.usage.failed


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.usefixtures("quick")
def test_failures_that_stay_are_given_up_and_asked_again_by_the_next_run(fault: str) -> None:
    reply, reason = FAULTS[fault]
    is_broken = True

    def respond(body: dict[str, Any], before: int) -> Reply:
        return reply if is_broken and last_line(body) == "word 1" else echo(body, before)

    with serving(respond) as server:
        model = ChatServer(f"{server.url}#tiny")
        with use_request_settings(retries=1):
            first = model.answer(requests(3))
            assert [answer.failure for answer in first] == [None, reason, None]
            assert model.usage.failed == {reason: 1}
            assert model.usage.repeated == {reason: 1}
            is_broken = False
            second = model.answer(requests(3))
    assert [second[0], second[2]] == [first[0], first[2]]
    assert second[1].failure is None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("too long", 400), "the server refused the request (400)"),
        (Reply("a long ans", finish_reason="length"), "the answer reached the maximum length"),
        (Reply("", finish_reason="content_filter"), "the server's content filter withheld the answer"),
        (Reply("  "), "the answer is empty"),
        (Reply("<think>only thoughts</think>"), "the answer is empty"),
    ],
)
def test_answers_that_are_none_are_counted_and_kept(reply: Reply, reason: str) -> None:
    with serving(lambda body, before: reply) as server:
        model = ChatServer(f"{server.url}#tiny")
        for _ in range(2):
            assert model.answer(requests(1))[0].failure == reason
    assert len(server.bodies) == 1
    assert model.usage.failed == {reason: 2}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def endless(kind: str) -> Iterator[bytes]:
    """An answer that never ends, in its first line, its headers or its body."""
    starts = {"headers": HEAD, "body": HEAD + b"Content-Length: 99999999\r\n\r\n", "status": b"HTTP/1.1 200 "}
    return itertools.chain([starts[kind]], itertools.repeat(b"x"))


@pytest.mark.parametrize("kind", ["headers", "body", "status"])
@pytest.mark.usefixtures("quick")
def test_answers_that_never_end_are_given_up(kind: str) -> None:
    """The server ends each of them only when the client has gone."""
    reason = "the server did not answer in time"
    with serving(lambda body, before: Reply(raw=lambda: endless(kind), pause=0.02)) as server:
        model = ChatServer(f"{server.url}#tiny")
        with use_request_settings(timeout=0.2, retries=1):
            assert model.answer(requests(2)) == [Answer("", reason)] * 2
    assert (model.usage.repeated, model.usage.failed) == ({reason: 2}, {reason: 2})


@pytest.mark.parametrize("kind", ["headers", "body", "status"])
def test_a_list_of_models_that_never_ends_is_an_error(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("entaug.backends.chat.server._LIST_SECONDS", 0.2)
    models = Reply(raw=lambda: endless(kind), pause=0.02)
    with serving(models=models) as server, pytest.raises(MissingModelError, match="did not answer in time"):
        ChatServer(server.url)


def deep(levels: int) -> bytes:
    return b'{"choices": ' + b"[" * levels + b"]" * levels + b"}"


def without_end(head: bytes) -> Reply:
    return Reply(raw=lambda: itertools.chain([head], itertools.repeat(b" " * 99_999)))


OVERSIZED: dict[str, Reply] = {
    "as it is": without_end(HEAD + b"\r\n"),
    "compressed": Reply(body=gzip.compress(b" " * 4_000_000), headers={"Content-Encoding": "gzip"}),
    "an error": without_end(b"HTTP/1.1 400 No\r\n\r\n"),
}


@pytest.mark.parametrize("kind", OVERSIZED)
def test_no_more_is_read_than_an_answer_may_be_long(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("entaug.backends.chat.client._MAX_BYTES", 1_000_000)
    with serving(lambda body, before: OVERSIZED[kind], models=OVERSIZED[kind]) as server:
        with use_request_settings(retries=0):
            [answer] = ChatServer(f"{server.url}#tiny").answer(requests(1))
        with pytest.raises(MissingModelError, match="the server sent far more than an answer"):
            ChatServer(server.url)
    assert answer == Answer("", "the server sent far more than an answer")


def completion(**changes: Any) -> bytes:
    """A completion with other values than usual."""
    return json.dumps({**json.loads(Reply("Yes.").content()), **changes}).encode()


def message(content: Any, **more: Any) -> bytes:
    return completion(choices=[{"message": {"role": "assistant", "content": content}, **more}])


ODD_CHOICES: list[Any] = [None, 7, {}, "ab", [None], [[]], ["a"], [{}], [{"message": 1}]]
ODD_TEXTS: list[Any] = [7, True, [], ["a"], {"text": "a"}, [{"type": "text", "text": "a"}]]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b'"text"', b"NaN", b'{"choices": NaN}', b"1" * 5000, deep(500), deep(100_000)),
        *(completion(choices=odd) for odd in ODD_CHOICES),
        *(message(odd) for odd in ODD_TEXTS),
    ],
)
def test_what_is_no_completion_is_no_answer(body: bytes) -> None:
    with serving(lambda request, before: Reply(body=body)) as server:
        model = ChatServer(f"{server.url}#tiny")
        with use_request_settings(retries=0):
            assert model.answer(requests(1)) == [Answer("", "what the server sent is not an answer")]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (message("half of an emoji: \ud83d"), Answer("", "the answer holds broken characters")),
        (message("\udc80"), Answer("", "the answer holds broken characters")),
        (message("a whole one: \U0001f600"), Answer("a whole one: \U0001f600")),
        (message("x" * 99_999), Answer("", "the answer is far longer than was asked for")),
        (message("<think>" * 400_000 + "Yes."), Answer("", "the answer is far longer than was asked for")),
        (message("<think></thinking>" * 200_000 + "Yes."), Answer("Yes.")),
        (message("Yes.", finish_reason=["stop"]), Answer("Yes.")),
        (message("Yes.", finish_reason={"a": 1}, index="first"), Answer("Yes.")),
        (completion(id=[1], created="now", model=None, object=3), Answer("Yes.")),
    ],
)
def test_odd_answers_are_kept_as_what_they_are(own_cache: Path, body: bytes, answer: Answer) -> None:
    with serving(lambda request, before: Reply(body=body)) as server:
        for _ in range(2):
            assert ChatServer(f"{server.url}#tiny").answer(requests(1)) == [answer]
    assert len(server.bodies) == 1


ODD_NUMBERS: list[Any] = [None, "10", -1, 1e308, float("nan"), float("inf"), True, [10], {"a": 1}, 10**30]


@pytest.mark.parametrize("odd", ODD_NUMBERS)
@pytest.mark.parametrize("usage", ["all", "prompt_tokens", "completion_tokens"])
def test_impossible_counts_of_tokens_are_not_counted(usage: str, odd: Any) -> None:
    value = odd if usage == "all" else {"prompt_tokens": 10, "completion_tokens": 5, usage: odd}
    body = completion(usage=value)
    with serving(lambda request, before: Reply(body=body)) as server:
        model = ChatServer(f"{server.url}#tiny")
        assert model.answer(requests(1)) == [Answer("Yes.")]
    assert (model.usage.input_tokens, model.usage.output_tokens) == (0, 0)
    assert "the server did not count the tokens of 1 answers" in model.usage.describe()


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_impossible_limits_are_refused(seconds: float) -> None:
    with pytest.raises(ParameterError, match="timeout"), use_request_settings(timeout=seconds):
        pass


ODD_ERRORS: list[Any] = [None, "text", 7, [], {"message": [1]}, {"message": None, "param": ["seed"]}]


@pytest.mark.parametrize(
    "error",
    [
        *({"error": odd} for odd in ODD_ERRORS),
        {"error": {"message": "no", "param": {"a": 1}, "code": [2]}},
        {"message": "\ud800"},
        [1],
        "text",
    ],
)
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
@pytest.mark.usefixtures("quick")
def test_odd_errors_are_errors(status: int, error: Any) -> None:
    reply = Reply(status=status, body=json.dumps(error).encode())
    with serving(lambda body, before: reply) as server, use_request_settings(retries=0):
        model = ChatServer(f"{server.url}#tiny")
        if status in (401, 404):
            with pytest.raises(EntaugError, match=str(status)):
                model.answer(requests(1))
        else:
            assert str(status) in str(model.answer(requests(1))[0].failure)


@pytest.mark.parametrize("value", ["nan", "-1", "1e999", "", "soon", "Mon, 01 Jan 0001 00:00:00 GMT", "9" * 400])
def test_odd_delays_are_bounded(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    def no_delay(attempt: int, failure: Failure) -> float:
        delays.append(retry_delay(attempt, failure))
        return 0.0

    monkeypatch.setattr("entaug.backends.chat.server.retry_delay", no_delay)
    with serving(lambda body, before: Reply("slow", 429, {"Retry-After": value})) as server:
        model = ChatServer(f"{server.url}#tiny")
        with use_request_settings(retries=1):
            assert model.answer(requests(1))[0].failure == "the rate limit was exceeded (429)"
    assert 0 <= delays[0] <= 300


ODD_LISTS: list[Any] = [None, [], {}, {"data": None}, {"data": {"id": "a"}}, {"data": "tiny"}, 7]
ODD_MODELS: list[Any] = [[], [None], ["a"], [{}], *([{"id": odd}] for odd in (7, "\ud800", "", "a" * 999, ["a"]))]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (Reply(body=b"<html>"), "what the server sent is not an answer; check the address, and name the model"),
        (Reply(body=deep(100_000)), "what the server sent is not an answer"),
        *((Reply(body=json.dumps(odd).encode()), "what the server sent is not an answer") for odd in ODD_LISTS),
        *((Reply(body=json.dumps({"data": odd}).encode()), "has 0 models; name one") for odd in ODD_MODELS),
        (Reply("no", 500), r"the server failed \(500\)"),
        (Reply(raw=lambda: [b"no HTTP at all"]), "the connection broke off"),
    ],
)
def test_odd_lists_of_models_are_one_error(models: Reply, message: str) -> None:
    with serving(models=models) as server, pytest.raises(MissingModelError, match=message) as caught:
        ChatServer(server.url)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("quick")
def test_a_key_that_the_server_repeats_is_kept_nowhere(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENTAUG_API_KEY", "sk-very-secret")
    said = "your key is sk-very-secret"
    escaped = message(said).replace(b"sk-very", b"\\u0073k-very")
    replies = [Reply(said), Reply(body=escaped), Reply(said, 400), Reply(said, 500), Reply(f"<think>{said}</think>Yes")]
    failures = {"the answer repeats the API key", "the server refused the request (400)", "the server failed (500)"}
    with serving(lambda body, before: replies[int(last_line(body).split()[-1])]) as server:
        model = ChatServer(f"{server.url}#tiny")
        with use_request_settings(retries=0):
            answers = model.answer(requests(5))
    assert {answer.failure for answer in answers} == {*failures, None}
    assert {answer.text for answer in answers} == {"", "Yes"}
    listed = Reply(body=json.dumps({"data": [{"id": said}]}).encode())
    with serving(models=listed) as server, pytest.raises(MissingModelError) as caught:
        ChatServer(server.url)
    for text in (repr(answers), repr(model.usage), *model.usage.describe(), str(caught.value), model.name):
        assert "secret" not in text
    assert all(b"secret" not in file.read_bytes() for file in own_cache.rglob("*") if file.is_file())


def test_the_word_that_stands_for_no_key_may_be_in_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENTAUG_API_KEY", "none")
    with serving(lambda body, before: Reply("There is none.")) as server:
        assert ChatServer(f"{server.url}#tiny").answer(requests(1)) == [Answer("There is none.")]


def test_thoughts_are_no_part_of_the_answer() -> None:
    with serving(lambda body, before: Reply("<think>\nhm\n</think>\nYes.")) as server:
        assert ChatServer(f"{server.url}#tiny").answer(requests(1)) == [Answer("Yes.")]


@pytest.mark.parametrize("name", ["seed", "temperature", "max_tokens"])
def test_parameters_that_a_server_does_not_take_are_left_out(name: str) -> None:
    def respond(body: dict[str, Any], before: int) -> Reply:
        return Reply(f"Unsupported parameter: '{name}'.", 400) if name in body else Reply("fine")

    with serving(respond) as server:
        model = ChatServer(f"{server.url}#tiny")
        with use_request_settings(concurrency=1):
            assert {answer.text for answer in model.answer(requests(3))} == {"fine"}
    assert len(server.bodies) == 4
    assert server.bodies[-1].get("max_completion_tokens") == (128 if name == "max_tokens" else None)


@pytest.mark.parametrize(("status", "says"), [(401, "refuses access"), (403, "refuses access"), (404, "no such model")])
def test_what_concerns_all_requests_stops_the_run(status: int, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENTAUG_API_KEY", "sk-very-secret")
    reply = Reply("wrong key sk-very-secret\nsecond line", status)
    with serving(lambda body, before: reply) as server, pytest.raises(EntaugError, match=says) as caught:
        ChatServer(f"{server.url}#tiny").answer(requests(3))
    assert "sk-very-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_an_error() -> None:
    with serving() as server:
        pass
    with pytest.raises(EntaugError, match="cannot be reached; start the server"):
        ChatServer(f"{server.url}#tiny").answer(requests(2))
    with pytest.raises(MissingModelError, match="cannot be reached"):
        ChatServer(server.url)


def test_redirects_are_not_followed() -> None:
    with serving() as other:
        target = {"Location": f"{other.url}/chat/completions"}
        reply = Reply(status=307, headers=target, body=b"")
        with serving(lambda body, before: reply) as server, pytest.raises(EntaugError, match="redirects"):
            ChatServer(f"{server.url}#tiny").answer(requests(1))
    assert not other.bodies


@pytest.mark.usefixtures("quick")
def test_a_server_that_fails_again_and_again_stops_the_run_and_answers_are_kept() -> None:
    def respond(body: dict[str, Any], before: int) -> Reply:
        return echo(body, before) if int(last_line(body).split()[-1]) < 3 else Reply("oh", 500)

    with serving(respond) as server:
        model = ChatServer(f"{server.url}#tiny")
        failed = pytest.raises(EntaugError, match=r"10 requests in a row failed \(the server failed \(500\)\)")
        with use_request_settings(concurrency=2, retries=0), failed:
            model.answer(requests(40))
    assert len(server.bodies) < 20
    assert [a.failure for a in ChatServer(f"{server.url}#tiny").answer(requests(3))] == [None] * 3


def test_the_key_is_sent_to_the_named_server_alone_and_never_written(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ORG_ID", "my-organisation")
    with serving() as server:
        ChatServer(f"{server.url}#tiny").answer(requests(1))
        monkeypatch.setenv("ENTAUG_API_KEY", "sk-very-secret")
        ChatServer(f"{server.url}#tiny").answer(requests(2))
    assert "authorization" not in server.headers[0]
    assert server.headers[1]["authorization"] == "Bearer sk-very-secret"
    assert not any(word in str(server.headers) for word in ("sk-of-openai", "my-organisation"))
    files = [file for file in own_cache.rglob("*") if file.is_file()]
    assert files
    assert not any(b"sk-" in file.read_bytes() for file in files)


def test_a_key_may_end_in_a_line_end_and_has_no_other_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        monkeypatch.setenv("ENTAUG_API_KEY", "sk-very-secret\r\n")
        ChatServer(f"{server.url}#tiny").answer(requests(1))
        for wrong in ("schlüssel", "sk-very\nsecret"):
            monkeypatch.setenv("ENTAUG_API_KEY", wrong)
            with pytest.raises(ParameterError, match="ENTAUG_API_KEY holds characters") as caught:
                ChatServer(f"{server.url}#tiny").answer(requests(2))
            assert wrong not in str(caught.value)
    assert [headers["authorization"] for headers in server.headers] == ["Bearer sk-very-secret"]


def test_openai_needs_a_key() -> None:
    with pytest.raises(ParameterError, match="ENTAUG_API_KEY"):
        ChatServer("https://api.openai.com/v1#some-model").answer(requests(1))


def test_the_only_model_needs_no_name() -> None:
    with serving() as server:
        assert ChatServer(server.url).name == f"{server.url}#tiny"
    with serving(models=("one", "two")) as server, pytest.raises(MissingModelError, match=r"has 2 models \(one, two\)"):
        ChatServer(server.url)


@pytest.mark.parametrize(
    "address",
    [
        "http://me:secret@host/v1#m",
        "https://host/v1?key=secret#m",
        "http://",
        "ftp://host/v1",
        "http://h:x/v1",
        "http://münchen..de/v1#m",
    ],
)
def test_addresses_with_secrets_or_faults_are_refused_without_repeating_them(address: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_address(address)
    assert "secret" not in str(caught.value)


def test_offline_forbids_other_machines_only() -> None:
    with use_compute_settings(offline=True):
        with pytest.raises(ParameterError, match="`offline` forbids"):
            ChatServer("https://models.example.org/v1#m")
        assert ChatServer("http://localhost:1/v1#m").remote_host is None
    assert ChatServer("https://models.example.org/v1#m").remote_host == "models.example.org"


def test_generators_are_loaded_by_address() -> None:
    assert check_name("generator", "http://localhost:1/v1#m")
    assert resolve("generator", "http://localhost:1/v1#m").name == "http://localhost:1/v1#m"
    with pytest.raises(MissingModelError, match="no such file"):
        load_generator("missing.gguf")
    with pytest.raises(ParameterError, match=r"17 is not a generator: it lacks .* \(Generator or InstructModel\)"):
        check_name("generator", 17)


# --------------------------------------------------------------------------------------------- settings, delays, cache


def test_settings_come_from_the_code_around_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (request_settings().concurrency, request_settings().retries) == (8, 6)
    monkeypatch.setenv("ENTAUG_LLM_CONCURRENCY", "3")
    assert request_settings().concurrency == 3
    with use_request_settings(concurrency=5, timeout=None):
        assert request_settings().concurrency == 5
    monkeypatch.setenv("ENTAUG_LLM_TIMEOUT", "soon")
    with pytest.raises(ParameterError, match="timeout"):
        request_settings()


@pytest.mark.parametrize(("value", "seconds"), [("3", 3.0), ("0.5", 0.5), ("9999", 300.0)])
def test_the_server_decides_how_long_to_wait(value: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    def no_delay(attempt: int, failure: Failure) -> float:
        delays.append(retry_delay(attempt, failure))
        return 0.0

    def respond(body: dict[str, Any], before: int) -> Reply:
        return echo(body, before) if before else Reply("slow", 429, {"Retry-After": value})

    monkeypatch.setattr("entaug.backends.chat.server.retry_delay", no_delay)
    with serving(respond) as server:
        [answer] = ChatServer(f"{server.url}#tiny").answer(requests(1))
    assert (answer.failure, delays) == (None, [seconds])


def test_it_can_be_asked_where_a_loop_is_running() -> None:
    async def ask() -> list[Answer]:
        return ChatServer(f"{server.url}#tiny").answer(requests(1))

    with serving(lambda body, before: Reply("Yes.")) as server:
        assert asyncio.run(ask()) == [Answer("Yes.")]


@given(st.integers(0, 2000))
def test_delays_double_up_to_a_maximum(attempt: int) -> None:
    expected = min(30.0, 0.5 * 2.0 ** min(attempt, 50))
    assert 0.75 * expected <= retry_delay(attempt, Failure("any", may_pass=True)) <= expected


_TEXTS = st.text(max_size=20)
_MESSAGES = st.tuples(st.builds(Message, _TEXTS, _TEXTS))
_REQUESTS = st.builds(ChatRequest, _MESSAGES, st.integers(0, 2**31), st.integers(1, 99), st.sampled_from([0.5, 1, 2.0]))


@given(st.lists(_REQUESTS, max_size=9))
def test_keys_are_equal_for_equal_requests_alone(some: list[ChatRequest]) -> None:
    assert len({request_key("m", request) for request in some}) == len(set(some))
    assert not {request_key("m", request) for request in some} & {request_key("n", request) for request in some}


def test_the_first_answer_stays(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "answers.sqlite")
    assert cache.put(b"a", Answer("one")) == Answer("one")
    assert AnswerCache(tmp_path / "answers.sqlite").put(b"a", Answer("two")) == Answer("one")
    keys = [str(i).encode() for i in range(1200)]
    assert cache.get([*keys, b"a"]) == {b"a": Answer("one")}


@pytest.mark.parametrize("content", [b"not a database, but a text of some length" * 99, None])
def test_a_file_that_cannot_hold_answers_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "answers"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(OutputError, match="name another file by `answers`"):
        AnswerCache(path)


def test_the_cache_holds_no_prompts(own_cache: Path) -> None:
    with serving(lambda body, before: Reply("fine")) as server:
        ChatServer(f"{server.url}#tiny").answer(requests(1, "a confidential sentence"))
    with sqlite3.connect(own_cache / "answers.sqlite") as connection:
        [(_, text, failure)] = connection.execute("SELECT * FROM answers")
    connection.close()
    assert (text, failure) == ("fine", None)
    assert b"confidential" not in (own_cache / "answers.sqlite").read_bytes()
