"""The race itself: who is asked, in which order, and what comes of it. Started by `compare`."""

import argparse
import json
import math
import os
import platform
import shutil
import statistics
from pathlib import Path

import album
import engines
import judge
import plot
import report
import rows
from workshop import Missing, SHOP, say

COSTS = ("photos_per_second", "cpu_per_photo", "rss", "bytes")
TUNING_PHOTOS, TUNING_ROUNDS = 4, 3


def main():
    wishes = _wishes()
    if wishes.self_test:
        judge.self_test()
        engines.self_test()
        print("self-test passed")
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: wishes.cores])
    photos = album.photos(wishes.photos_dir, wishes.photos)
    contestants, left_out = _contestants(wishes)
    setting = {
        "machine": _machine(),
        "photos": album.describe(photos),
        "rounds": wishes.rounds,
        "left_out": left_out,
    }
    print(report.opening(setting), flush=True)
    ways = {engine.name: _best_way(engine, photos) for engine in contestants}
    results = []
    for row in _rows(wishes, contestants):
        results.append(_race(row, contestants, ways, photos, wishes))
        print(report.row(results[-1], per_photo=wishes.list), flush=True)
    picture = wishes.plot or SHOP / "rivals.png"
    plot.draw(setting, results, picture)
    print(f"\nplot: {picture}")
    if wishes.json:
        Path(wishes.json).write_text(json.dumps({**setting, "rows": results}, indent=1))


def _wishes():
    parser = argparse.ArgumentParser(prog="compare", description=__doc__)
    parser.add_argument("photos_dir", nargs="?", metavar="PHOTOS_DIR", help="photos to use instead of our own set")
    parser.add_argument("--rounds", type=int, default=5, help="each engine runs once a round, in turns [5]")
    parser.add_argument("--photos", type=int, metavar="N", help="only N of the photos, spread over all sizes")
    parser.add_argument("--cores", type=int, default=2, help="cores that everybody is held to [2]")
    parser.add_argument("--engines", default=",".join(engines.NAMES), help="[%(default)s]")
    parser.add_argument("--row", choices=["standard", "platform", "all"], default="all", help="which settings [all]")
    parser.add_argument("--platform-ours", default="m4", metavar="mN", help="our own effort in the platform row [m4]")
    parser.add_argument("--list", action="store_true", help="also the SSIM of each photo")
    parser.add_argument("--json", metavar="FILE", help="every figure of every round")
    parser.add_argument("--plot", metavar="FILE", help="PNG, SVG or PDF [target/rivals/rivals.png]")
    parser.add_argument("--self-test", action="store_true", help="check SSIM and memory, and end")
    wishes = parser.parse_args()
    wishes.engines = wishes.engines.split(",")
    if unknown := [name for name in wishes.engines if name not in engines.NAMES]:
        parser.error(f"{', '.join(unknown)}: no such engine; there are {', '.join(engines.NAMES)}")
    if wishes.rounds < 1 or wishes.cores < 1:
        parser.error("rounds and cores are one at least")
    return wishes


def _contestants(wishes):
    found, left_out = [], []
    for name in wishes.engines:
        try:
            found.append(engines.engine(name, wishes.cores))
        except Missing as missing:
            left_out.append(f"{name}: {missing}")
            say(f"left out: {left_out[-1]}")
    if not found:
        raise SystemExit("nobody is left to race")
    return found, left_out


def _rows(wishes, contestants):
    sharp_yuv = engines.knows_sharp_yuv([engine.name for engine in contestants])
    wanted = {"standard": rows.standard(), "platform": rows.platform(int(wishes.platform_ours.strip("m")), sharp_yuv)}
    return [row for name, row in wanted.items() if wishes.row in (name, "all")]


def _race(row, contestants, ways, photos, wishes):
    """Pictures first, which also warms the file cache; then the rounds."""
    say(f"\n{row.name}: making the pictures that are judged")
    folders, photos = _pictures(row, contestants, photos)
    scores = judge.judge(photos, row, folders, wishes.cores)
    rounds = []
    for number in range(wishes.rounds):
        rounds.append({})
        shift = number % len(contestants)
        for engine in contestants[shift:] + contestants[:shift]:
            figures = _checked(engine, engine.run(row, photos, ways[engine.name]), photos)
            rounds[-1][engine.name] = figures
            say(f"  round {number + 1}/{wishes.rounds} {engine.name:15} {_speed(figures):6.2f} photos/s")
    return _result(row, contestants, ways, rounds, scores)


def _pictures(row, contestants, photos):
    """What each made of each photo; photos that somebody cannot take are left out for all, and named."""
    judged = [engine for engine in contestants if engine.name != "ingest"]
    folders, refused = {}, set()
    for engine in judged:
        folder = SHOP / "pictures" / row.name / engine.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        failed = engine.run(row, photos, engine.ways[0], folder)["failed"]
        for photo in failed:
            say(f"  left out: {photo}, which {engine.name} cannot take")
        refused.update(failed)
        folders[engine.name] = folder
    photos = [photo for photo in photos if str(photo) not in refused]
    if not photos:
        raise SystemExit("there is no photo that everybody can take")
    return folders, photos


def _best_way(engine, photos):
    """The fastest of some rounds over a few photos with the standard settings, tried in turns."""
    if len(engine.ways) == 1:
        return engine.ways[0]
    few = photos[:: math.ceil(len(photos) / TUNING_PHOTOS)]
    walls = [[] for _ in engine.ways]
    for _ in range(TUNING_ROUNDS):
        for way, wall in zip(engine.ways, walls):
            wall.append(engine.run(rows.standard(), few, way)["wall"])
    best = min(range(len(walls)), key=lambda at: min(walls[at]))
    tried = ", ".join(f"{_in_words(way)}: {min(wall):.2f} s" for way, wall in zip(engine.ways, walls))
    say(f"  best for {engine.name} is {_in_words(engine.ways[best])} ({tried})")
    return engine.ways[best]


def _in_words(way):
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in way.items())


def _checked(engine, figures, photos):
    if figures["photos"] != len(photos):
        raise SystemExit(f"{engine.name} made {figures['photos']} of {len(photos)} photos")
    return figures


def _speed(figures):
    return figures["photos"] / figures["wall"]


def _costs(figures):
    return {
        "photos_per_second": _speed(figures),
        "cpu_per_photo": figures["cpu"] / figures["photos"],
        "rss": figures["rss"],
        "bytes": figures["bytes_large"] + figures["bytes_medium"],
    }


def _result(row, contestants, ways, rounds, scores):
    costs = {engine.name: [_costs(figures[engine.name]) for figures in rounds] for engine in contestants}
    middle = {name: {cost: statistics.median(own[cost] for own in every) for cost in COSTS} for name, every in costs.items()}
    base = _best_sharp(middle)
    made = []
    for engine in contestants:
        ratios = {cost: [a[cost] / b[cost] for a, b in zip(costs[engine.name], costs[base])] for cost in COSTS}
        spread = {cost: (statistics.median(every), min(every), max(every)) for cost, every in ratios.items()}
        made.append({
            "engine": engine.name,
            "form": engine.form,
            "way": _in_words(ways[engine.name]),
            "version": rounds[0][engine.name]["version"],
            "median": middle[engine.name],
            "ratio": spread,
            "ssim": _mean_scores(_scores_of(engine.name, scores, middle)),
            "ssim_per_photo": scores.get(engine.name, {}),
        })
    settings = {"rivals": [str(row.large), str(row.medium)], "ours": [str(row.our_large), str(row.our_medium)]}
    return {"row": row.name, "settings": settings, "base": base, "engines": made, "rounds": rounds}


def _best_sharp(middle):
    """Whom everybody is measured by: the fastest form; of two about as fast, the one with less CPU, which is less noisy.

    Without sharp it is whoever was named first.
    """
    sharps = [name for name in middle if name.startswith("sharp")] or list(middle)[:1]
    fastest = max(middle[name]["photos_per_second"] for name in sharps)
    about_as_fast = [name for name in sharps if middle[name]["photos_per_second"] > 0.95 * fastest]
    return min(about_as_fast, key=lambda name: middle[name]["cpu_per_photo"])


def _scores_of(name, scores, middle):
    """`ingest` names its pictures otherwise; they are ours if they are ours to the byte."""
    if name == "ingest" and "ours" in middle and middle[name]["bytes"] == middle["ours"]["bytes"]:
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
