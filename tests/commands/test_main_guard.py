"""Scripts that use several processes: each of these imports the script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import entaug
from conftest import EXAMPLE

TRAIN = str(EXAMPLE / "train.conll")
CALL = f"entaug.augment_file({TRAIN!r}, 'out.jsonl', entaug.create_augmenter('sis'), jobs=2)"
SCRIPTS = {
    "plain": f"import entaug\n\n{CALL}\n",
    "in a function": f"import entaug\n\ndef run():\n    {CALL}\n\nrun()\n",
    "in a loop": f"import entaug\nfor _ in range(1):\n    if __name__:\n        pass\n    {CALL}\n",
}
GUARDED = {
    "guarded": f'import entaug\n\nif __name__ == "__main__":\n    {CALL}\n',
    "guarded function": f"import entaug\n\ndef run():\n    {CALL}\n\nif '__main__' == __name__: run()\n",
    "without jobs": f"import entaug\n\n{CALL.replace(', jobs=2', '')}\n",
}


def run(tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "script.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(entaug.__file__).parent.parent)}
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_script_without_a_guard_is_told_so(kind: str, tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPTS[kind])
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    line = len(SCRIPTS[kind].splitlines())
    assert f"script.py:{line}: several processes are started by code that each of them would run again; " in last
    assert last.endswith('put the code of the script under: if __name__ == "__main__":, or leave out jobs')
    assert "multiprocessing" not in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.parametrize("kind", GUARDED)
def test_scripts_with_a_guard_or_without_jobs_run(kind: str, tmp_path: Path) -> None:
    done = run(tmp_path, GUARDED[kind])
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.jsonl").exists()
