"""Photos in flight for the contestants written in Python: threads of one process, or processes."""

import json
import multiprocessing
import os
import re
import resource
import sys
import threading
import time
from pathlib import Path


def run(job, develop, version):
    """`develop(bytes) -> (large, medium)` for every photo of the job; prints the figures as JSON."""
    figures = (_processes if job["crew"] == "processes" else _threads)(job, develop)
    print(json.dumps({**figures, "version": version}))


def _threads(job, develop):
    tally, following = _tally(), _following(job["photos"], threading.Lock(), [0])
    crew = [threading.Thread(target=_work, args=(job, develop, following, tally)) for _ in range(job["in_flight"])]
    started, cpu = time.perf_counter(), _cpu()
    for member in crew:
        member.start()
    for member in crew:
        member.join()
    tally.update(wall=time.perf_counter() - started, cpu=_cpu() - cpu, rss=_peak_rss())
    return tally


def _processes(job, develop):
    """Forked, ready and waiting before the clock starts. Peaks are summed, what they share included."""
    system = multiprocessing.get_context("fork")
    following = _following(job["photos"], system.Lock(), system.Array("i", 1, lock=False))
    start, reports = system.Barrier(job["in_flight"] + 1), system.SimpleQueue()

    def member():
        start.wait()
        tally, cpu = _tally(), _cpu()
        _work(job, develop, following, tally)
        tally.update(cpu=_cpu() - cpu, rss=_peak_rss())
        reports.put(tally)

    crew = [system.Process(target=member) for _ in range(job["in_flight"])]
    for process in crew:
        process.start()
    start.wait()
    started, cpu = time.perf_counter(), _cpu()
    tallies = [reports.get() for _ in crew]
    wall, cpu = time.perf_counter() - started, _cpu() - cpu
    for process in crew:
        process.join()
    total = {key: sum((tally[key] for tally in tallies[1:]), tallies[0][key]) for key in tallies[0]}
    total.update(wall=wall, cpu=total["cpu"] + cpu, rss=total["rss"] + _peak_rss())
    return total


def _tally():
    return {"photos": 0, "failed": [], "bytes_large": 0, "bytes_medium": 0}


def _following(photos, lock, position):
    def following():
        with lock:
            at, position[0] = position[0], position[0] + 1
        return photos[at] if at < len(photos) else None

    return following


_noting = threading.Lock()


def _work(job, develop, following, tally):
    while photo := following():
        try:
            large, medium = develop(Path(photo).read_bytes())
        except Exception as error:  # whatever a library raises: the photo counts as failed, and is named
            print(f"{photo}: {error}", file=sys.stderr)
            tally["failed"].append(photo)
            continue
        if job["out"]:
            for variant, webp in (("large", large), ("medium", medium)):
                Path(job["out"], f"{os.path.basename(photo)}.{variant}.webp").write_bytes(webp)
        with _noting:
            tally["photos"] += 1
            tally["bytes_large"] += len(large)
            tally["bytes_medium"] += len(medium)


def _cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_rss():
    return 1024 * int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])
