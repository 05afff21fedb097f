"""Runs a command and prints the wall time, CPU time and peak memory of its process tree as JSON.

Memory is sampled as the sum of the proportional set sizes (PSS) of all processes, which counts shared pages once. `ru_maxrss` would be the
peak of the largest process only. This is a separate small program because Linux includes the memory of the parent at fork time in the
peak of the child.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

INTERVAL_SECONDS = 0.02


def process_tree(root):
    """Returns the IDs of the process and of its running descendants."""
    found = [root]
    for process in found:
        for task in _list(f"/proc/{process}/task"):
            found += [int(child) for child in _read(f"/proc/{process}/task/{task}/children").split()]
    return found


def memory(root):
    """Returns the memory of the process tree in bytes."""
    return sum(_pss_kib(process) for process in process_tree(root)) * 1024


def _pss_kib(process):
    lines = _read(f"/proc/{process}/smaps_rollup").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _read(path):
    """Returns the content of a file, or an empty string if the process has exited."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _list(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


class MemorySampler:
    """Samples the memory of a process tree in a thread until it is stopped."""

    def __init__(self, process):
        self.peak, self._process, self._stopped = 0, process, threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self):
        while not self._stopped.wait(INTERVAL_SECONDS):
            self.peak = max(self.peak, memory(self._process))

    def stop(self):
        self._stopped.set()
        self._thread.join()


def main():
    started = time.perf_counter()
    null = os.open(os.devnull, os.O_WRONLY)
    discard_output = [(os.POSIX_SPAWN_DUP2, null, 1)]
    process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=discard_output)
    sampler = MemorySampler(process)
    _, status, usage = os.wait4(process, 0)
    wall = time.perf_counter() - started
    sampler.stop()
    # For a process that exited before the first sample.
    peak = max(sampler.peak, usage.ru_maxrss * 1024)
    print(json.dumps({"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "rss": peak}))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
