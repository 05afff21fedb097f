"""Compares the image processor with sharp, pyvips and Pillow: speed, CPU, memory, bytes and SSIM. Started by `compare`."""

import argparse
import json
import math
import os
import platform
import shutil
import statistics
from pathlib import Path

import encode_settings
import engines
import photo_set
import plot
import quality
import report
from installation import MissingDependency, TARGET, log

METRICS = ("photos_per_second", "cpu_per_photo", "rss", "bytes")
TUNING_PHOTOS, TUNING_ROUNDS = 4, 3


def main():
    options = _parse_options()
    if options.self_test:
        quality.self_test()
        engines.self_test()
        print("self-test passed")
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    photos = photo_set.photos(options.photos_dir, options.photos)
    compared, left_out = _load_engines(options)
    setup = {
        "machine": _machine(),
        "photos": photo_set.describe(photos),
        "rounds": options.rounds,
        "left_out": left_out,
    }
    print(report.header(setup), flush=True)
    parallelism = {engine.name: _best_parallelism(engine, photos) for engine in compared}
    results = []
    for row in _settings_rows(options, compared):
        results.append(_compare(row, compared, parallelism, photos, options))
        print(report.row(results[-1], per_photo=options.list), flush=True)
    plot_path = options.plot or TARGET / "rivals.png"
    plot.draw(setup, results, plot_path)
    print(f"\nplot: {plot_path}")
    if options.json:
        Path(options.json).write_text(json.dumps({**setup, "rows": results}, indent=1))


def _parse_options():
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("photos_dir", nargs="?", metavar="PHOTOS_DIR", help="folder of photos to use instead of the default photos")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; each engine runs once per round [5]")
    parser.add_argument("--photos", type=int, metavar="N", help="use only N of the photos, spread over all sizes")
    parser.add_argument("--cores", type=int, default=2, help="number of cores for each engine [2]")
    parser.add_argument("--engines", default=",".join(engines.NAMES), help="engines to compare [%(default)s]")
    parser.add_argument("--row", choices=["standard", "platform", "all"], default="all", help="encoder settings [all]")
    parser.add_argument("--platform-ours", default="m4", metavar="mN", help="effort of sparks with the platform's settings [m4]")
    parser.add_argument("--list", action="store_true", help="also print the SSIM of each photo")
    parser.add_argument("--json", metavar="FILE", help="write all figures of all rounds to this file")
    parser.add_argument("--plot", metavar="FILE", help="write the plot to this PNG, SVG or PDF file [target/rivals/rivals.png]")
    parser.add_argument("--self-test", action="store_true", help="check the measurement of SSIM and memory, then exit")
    options = parser.parse_args()
    options.engines = options.engines.split(",")
    if unknown := [name for name in options.engines if name not in engines.NAMES]:
        parser.error(f"unknown engine {', '.join(unknown)}; choose from {', '.join(engines.NAMES)}")
    if options.rounds < 1 or options.cores < 1:
        parser.error("--rounds and --cores must be at least 1")
    return options


def _load_engines(options):
    found, left_out = [], []
    for name in options.engines:
        try:
            found.append(engines.engine(name, options.cores))
        except MissingDependency as missing:
            left_out.append(f"{name}: {missing}")
            log(f"left out: {left_out[-1]}")
    if not found:
        raise SystemExit("no engine is available")
    return found, left_out


def _settings_rows(options, compared):
    sharp_yuv = engines.supports_sharp_yuv([engine.name for engine in compared])
    platform = encode_settings.platform(int(options.platform_ours.strip("m")), sharp_yuv)
    rows = {"standard": encode_settings.standard(), "platform": platform}
    return [row for name, row in rows.items() if options.row in (name, "all")]


def _compare(row, compared, parallelism, photos, options):
    """Renders the variants for SSIM first, which also warms the file cache; then runs the rounds."""
    log(f"\n{row.name}: rendering the variants for SSIM")
    folders, photos = _render_variants(row, compared, photos)
    scores = quality.measure(photos, row, folders, options.cores)
    rounds = []
    for number in range(options.rounds):
        rounds.append({})
        shift = number % len(compared)
        for engine in compared[shift:] + compared[:shift]:
            figures = engine.run(row, photos, parallelism[engine.name])
            _check_count(engine, figures, photos)
            rounds[-1][engine.name] = figures
            log(f"  round {number + 1}/{options.rounds} {engine.name:15} {_speed(figures):6.2f} photos/s")
    return _result(row, compared, parallelism, rounds, scores)


def _render_variants(row, compared, photos):
    """Returns the folder of variants of each engine, and the photos that all engines could process; logs the others."""
    folders, rejected = {}, set()
    for engine in compared:
        if engine.name == "ingest":
            continue
        folder = TARGET / "variants" / row.name / engine.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        failed = engine.run(row, photos, engine.parallelism_options[0], folder)["failed"]
        for photo in failed:
            log(f"  left out: {photo}, which {engine.name} cannot process")
        rejected.update(failed)
        folders[engine.name] = folder
    photos = [photo for photo in photos if str(photo) not in rejected]
    if not photos:
        raise SystemExit("no photo can be processed by all engines")
    return folders, photos


def _best_parallelism(engine, photos):
    """Returns the fastest option of the engine over a few photos with the standard settings, from interleaved rounds."""
    options = engine.parallelism_options
    if len(options) == 1:
        return options[0]
    sample = photos[:: math.ceil(len(photos) / TUNING_PHOTOS)]
    wall_times = [[] for _ in options]
    for _ in range(TUNING_ROUNDS):
        for option, times in zip(options, wall_times):
            times.append(engine.run(encode_settings.standard(), sample, option)["wall"])
    best = min(range(len(options)), key=lambda at: min(wall_times[at]))
    tried = ", ".join(f"{_describe(option)}: {min(times):.2f} s" for option, times in zip(options, wall_times))
    log(f"  best for {engine.name}: {_describe(options[best])} ({tried})")
    return options[best]


def _describe(parallelism):
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in parallelism.items())


def _check_count(engine, figures, photos):
    if figures["photos"] != len(photos):
        raise SystemExit(f"{engine.name} processed {figures['photos']} of {len(photos)} photos")


def _speed(figures):
    return figures["photos"] / figures["wall"]


def _metrics(figures):
    return {
        "photos_per_second": _speed(figures),
        "cpu_per_photo": figures["cpu"] / figures["photos"],
        "rss": figures["rss"],
        "bytes": figures["bytes_large"] + figures["bytes_medium"],
    }


def _result(row, compared, parallelism, rounds, scores):
    values = {engine.name: [_metrics(figures[engine.name]) for figures in rounds] for engine in compared}
    medians = {name: {key: statistics.median(each[key] for each in every) for key in METRICS} for name, every in values.items()}
    base = _baseline(medians)
    results = []
    for engine in compared:
        ratios = {key: [a[key] / b[key] for a, b in zip(values[engine.name], values[base])] for key in METRICS}
        spread = {key: (statistics.median(every), min(every), max(every)) for key, every in ratios.items()}
        results.append({
            "engine": engine.name,
            "form": engine.form,
            "way": _describe(parallelism[engine.name]),
            "version": rounds[0][engine.name]["version"],
            "median": medians[engine.name],
            "ratio": spread,
            "ssim": _mean_scores(_scores_of(engine.name, scores, medians)),
            "ssim_per_photo": scores.get(engine.name, {}),
        })
    settings = {"rivals": [str(row.large), str(row.medium)], "ours": [str(row.our_large), str(row.our_medium)]}
    return {"row": row.name, "settings": settings, "base": base, "engines": results, "rounds": rounds}


def _baseline(medians):
    """Returns the best form of sharp, which ratios refer to; the first engine if there is no sharp.

    The best is the fastest; of forms within 5 %, the one with the least CPU time, which is less noisy.
    """
    sharps = [name for name in medians if name.startswith("sharp")] or list(medians)[:1]
    fastest = max(medians[name]["photos_per_second"] for name in sharps)
    about_as_fast = [name for name in sharps if medians[name]["photos_per_second"] > 0.95 * fastest]
    return min(about_as_fast, key=lambda name: medians[name]["cpu_per_photo"])


def _scores_of(name, scores, medians):
    """Returns the SSIM of an engine. `ingest` uses other file names; with equal sizes its variants are those of `ours`."""
    if name == "ingest" and "ours" in medians and medians[name]["bytes"] == medians["ours"]["bytes"]:
        return scores["ours"]
    return scores.get(name)


def _mean_scores(scores):
    if not scores:
        return None
    mean = lambda variant, at: statistics.fmean(score[variant][at] for score in scores.values())
    return {variant: [mean(variant, at) for at in (0, 1)] for variant in ("large", "medium")}


def _machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    return f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} cores of {model or platform.machine()}, {platform.system()}"


if __name__ == "__main__":
    main()
