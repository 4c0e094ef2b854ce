"""Run a program until standard input is closed: ``python -m entaug.backends.chat.watcher PROGRAM [ARGUMENT ...]``.

The other end of standard input belongs to the process that needs the program. It is closed however that process ends,
so the program never outlives it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

_SECONDS_TO_END = 5.0


def main(command: list[str]) -> int:
    """Run a program until it ends or standard input is closed."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 (the user's own program)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127

    def end_with_input() -> None:
        while os.read(0, 4096):  # not buffered: a buffer's lock would disturb the end of this process
            pass
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
        process.kill()

    threading.Thread(target=end_with_input, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
