"""Runs a command and prints what the whole process and its children took as JSON.

Memory is looked at while they run: what the system itself remembers (`ru_maxrss`) is the peak of whichever process had the
most, and a worker has several at once. Pages that processes share count once (PSS). Its own process because Linux counts the
memory of whoever starts a process into the peak of the started one, so that must be somebody small.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

PAUSE = 0.02


def family(oldest):
    """The process, its children, theirs and so on, as far as they are there."""
    found = [oldest]
    for member in found:
        for task in _listed(f"/proc/{member}/task"):
            found += [int(child) for child in _text(f"/proc/{member}/task/{task}/children").split()]
    return found


def memory(oldest):
    """Bytes that the family has right now."""
    return sum(_proportional(member) for member in family(oldest)) * 1024


def _proportional(process):
    lines = _text(f"/proc/{process}/smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _text(path):
    """Nothing of a process that has just ended."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


class Watch:
    """Looks again and again, until told to stop."""

    def __init__(self, process):
        self.peak, self._process, self._ended = 0, process, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self):
        while not self._ended.wait(PAUSE):
            self.peak = max(self.peak, memory(self._process))

    def stop(self):
        self._ended.set()
        self._thread.join()


def main():
    started = time.perf_counter()
    silent = os.open(os.devnull, os.O_WRONLY)
    quiet = [(os.POSIX_SPAWN_DUP2, silent, 1)]
    process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
    watch = Watch(process)
    _, status, usage = os.wait4(process, 0)
    wall = time.perf_counter() - started
    watch.stop()
    # Who was gone before the first look had no children for long.
    peak = max(watch.peak, usage.ru_maxrss * 1024)
    print(json.dumps({"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "rss": peak}))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
