"""Runs a render function over the photos of a job, with threads of one process or with several processes."""

import json
import multiprocessing
import os
import re
import resource
import sys
import threading
import time
from pathlib import Path


def run(job, render, version):
    """Calls `render(bytes) -> (large, medium)` for every photo of the job and prints the figures as JSON."""
    figures = (_run_processes if job["pool"] == "processes" else _run_threads)(job, render)
    print(json.dumps({**figures, "version": version}))


def _run_threads(job, render):
    figures, next_photo = _zero_figures(), _photo_iterator(job["photos"], threading.Lock(), [0])
    threads = [threading.Thread(target=_work, args=(job, render, next_photo, figures)) for _ in range(job["in_flight"])]
    started, cpu = time.perf_counter(), _cpu()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures.update(wall=time.perf_counter() - started, cpu=_cpu() - cpu, rss=_peak_rss())
    return figures


def _run_processes(job, render):
    """Starts the clock after all processes are forked and ready. Peaks are summed, including shared pages."""
    context = multiprocessing.get_context("fork")
    next_photo = _photo_iterator(job["photos"], context.Lock(), context.Array("i", 1, lock=False))
    start, results = context.Barrier(job["in_flight"] + 1), context.SimpleQueue()

    def process_photos():
        start.wait()
        figures, cpu = _zero_figures(), _cpu()
        _work(job, render, next_photo, figures)
        figures.update(cpu=_cpu() - cpu, rss=_peak_rss())
        results.put(figures)

    processes = [context.Process(target=process_photos) for _ in range(job["in_flight"])]
    for process in processes:
        process.start()
    start.wait()
    started, cpu = time.perf_counter(), _cpu()
    parts = [results.get() for _ in processes]
    wall, cpu = time.perf_counter() - started, _cpu() - cpu
    for process in processes:
        process.join()
    total = {key: sum((part[key] for part in parts[1:]), parts[0][key]) for key in parts[0]}
    total.update(wall=wall, cpu=total["cpu"] + cpu, rss=total["rss"] + _peak_rss())
    return total


def _zero_figures():
    return {"photos": 0, "failed": [], "bytes_large": 0, "bytes_medium": 0}


def _photo_iterator(photos, lock, position):
    """Returns a function that returns the next photo, for threads and for processes; None at the end."""

    def next_photo():
        with lock:
            at, position[0] = position[0], position[0] + 1
        return photos[at] if at < len(photos) else None

    return next_photo


_figures_lock = threading.Lock()


def _work(job, render, next_photo, figures):
    while photo := next_photo():
        try:
            large, medium = render(Path(photo).read_bytes())
        except Exception as error:  # libraries raise various types; the photo is reported as failed
            print(f"{photo}: {error}", file=sys.stderr)
            figures["failed"].append(photo)
            continue
        if job["out"]:
            for variant, webp in (("large", large), ("medium", medium)):
                Path(job["out"], f"{os.path.basename(photo)}.{variant}.webp").write_bytes(webp)
        with _figures_lock:
            figures["photos"] += 1
            figures["bytes_large"] += len(large)
            figures["bytes_medium"] += len(medium)


def _cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_rss():
    return 1024 * int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])
