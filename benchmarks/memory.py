"""Memory of a training: the generator of ACLM, with the settings of its paper, on a CPU.

    .venv/bin/python benchmarks/memory.py --sentences 48 200

Each row is a process of its own, with one thread: `fit` on the first sentences of MultiCoNER in English, two epochs of
SmolLM2 with all weights, and a tagger of three epochs for the keywords. CPU seconds, the peak of memory, and what the
process holds afterwards, with so many kernels of oneDNN kept (what entaug sets, and the default of oneDNN).
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

DATA = Path(__file__).parents[2] / "shared" / "data" / "multiconer-v1" / "1000" / "en_sample_train.conll"
KERNELS = ("256", "1024")


def fit(count: int) -> None:
    """Fit ACLM to the first sentences; print a row."""
    import entaug

    augmenter = entaug.create_augmenter(
        "aclm",
        preset="paper",
        generator="smollm2",
        constrained=True,
        batch_size=8,
        learning_rate=5e-5,
        epochs=2,
        encoder="minilm",
        tagger="linear:encoder=minilm;epochs=3;batch_size=16",
        seed=0,
    )
    augmenter.fit(list(entaug.read(DATA))[:count])
    status = Path("/proc/self/status").read_text()
    peak, now = (int(re.search(rf"{name}:\s*(\d+)", status)[1]) for name in ("VmHWM", "VmRSS"))  # type: ignore[index]
    kernels = os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]
    print(f"| {count} | {kernels} | {time.process_time():.0f} | {peak / 2**20:.1f} | {now / 2**20:.1f} |", flush=True)


def main() -> None:
    """Measure in processes of their own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, nargs="+", default=[48, 200])
    parser.add_argument("--only", type=int, help="fit here, to so many sentences")
    args = parser.parse_args()
    if args.only:
        fit(args.only)
        return
    print(f"{platform.machine()}, one thread\n\n| sentences | kernels | CPU s | peak, GB | afterwards, GB |")
    print("| ---: | ---: | ---: | ---: | ---: |", flush=True)
    for count in args.sentences:
        for kernels in KERNELS:
            settings = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": kernels, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, __file__, "--only", str(count)]
            subprocess.run(command, check=True, env=os.environ | settings)


if __name__ == "__main__":
    main()
