"""Who takes part, and how each is started."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field

import workshop
from workshop import HOME, SHOP

NAMES = ["ours", "turbo", "sharp-clones", "sharp-chained", "pyvips-clones", "pyvips-chained", "pillow", "ingest"]

TURBO = "one decode; libjpeg-turbo for baseline at five eighths or more, our own decoder otherwise"


@dataclass(frozen=True)
class Engine:
    """One form of one library. `ways` are ways to keep all cores busy: the race begins by finding the best."""

    name: str
    form: str
    ways: list
    start: object = field(repr=False)

    def run(self, row, photos, way, out=None):
        """One process; its figures."""
        return self.start(row, [str(photo) for photo in photos], way, out)


def engine(name, cores):
    """By its name on the command line; `Missing` says what it lacks."""
    if name == "ours":
        return _ours(name, workshop.develop(), cores, "one decode, by a decoder in Rust")
    if name == "turbo":
        return _ours(name, workshop.develop_turbo(), cores, TURBO)
    if name == "ingest":
        return _ingest(cores)
    library, _, form = name.partition("-")
    return {"sharp": _sharp, "pyvips": _pyvips, "pillow": _pillow}[library](name, form, cores)


def knows_sharp_yuv(names):
    """Whether our engine was built with it, in whichever of its forms takes part."""
    programs = {"ours": "develop", "turbo": "develop-turbo"}
    program = next((workshop.PROGRAMS / programs[name] for name in names if name in programs), None)
    if program is None:
        return False
    return "sharp" in subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout


def _ours(name, program, cores, form):
    def start(row, photos, way, out):
        spec = lambda p: f"{p.fit}:{p.size}:q{p.quality}:m{p.effort}" + (":sharp" if p.sharp_yuv else "")
        command = [program, "--threads", str(way["threads"]), "--large", spec(row.our_large)]
        command += ["--medium", spec(row.our_medium), *(["--out", str(out)] if out else []), *photos]
        return _figures(command) | {"version": workshop.our_versions()}

    return Engine(name, form, [{"threads": cores}], start)


def _sharp(name, form, cores):
    home = str(workshop.node_with_sharp())
    texts = {
        "clones": "two clones of one pipeline, each decodes, shrunk on load",
        "chained": "one decode, shrunk on load; medium made of the raw pixels of large",
    }
    ways = [(1, cores), (cores, 1), (cores, cores)]
    ways = [{"concurrency": threads, "in_flight": photos} for threads, photos in ways]
    start = _rival(["node", HOME / "contestants" / "sharp.mjs"], form, home=home)
    return Engine(name, texts[form], ways, start)


def _pyvips(name, form, cores):
    texts = {
        "clones": "two thumbnails of the file, each decodes, shrunk on load",
        "chained": "one thumbnail, shrunk on load; medium made of its pixels",
    }
    ways = [("threads", 1, cores), ("threads", cores, cores), ("processes", 1, cores)]
    ways = [{"crew": crew, "concurrency": threads, "in_flight": photos} for crew, threads, photos in ways]
    return Engine(name, texts[form], ways, _rival(_python("vips.py"), form))


def _pillow(name, form, cores):
    ways = [{"crew": crew, "in_flight": cores} for crew in ("threads", "processes")]
    form = "one decode, shrunk by draft(); medium made of large; has no sharp YUV"
    return Engine(name, form, ways, _rival(_python("pillow.py"), form))


def _ingest(cores):
    """The real binary into a fresh folder: start, hashes, store, log and all."""
    program = str(workshop.sparks())
    configured = (workshop.ROOT / "config" / "default.toml").read_text()

    def start(row, photos, way, _out):
        data = SHOP / "ingested"
        shutil.rmtree(data, ignore_errors=True)
        settings = {}
        for variant, picture in (("LARGE", row.our_large), ("MEDIUM", row.our_medium)):
            values = {"FIT": picture.fit, "WIDTH": picture.size, "HEIGHT": picture.size}
            values |= {"QUALITY": picture.quality, "METHOD": picture.effort}
            if "sharp_yuv" in configured:
                values["SHARP_YUV"] = str(picture.sharp_yuv).lower()
            settings |= {f"SPARKS_VARIANTS_{variant}_{key}": str(value) for key, value in values.items()}
        command = [program, "ingest", "--data", data, "--faces", "off", "--jobs", way["jobs"], "--json", *photos]
        figures = _figures([*_python("whole.py"), *command], settings)
        made = {v: sorted((data / "objects" / "processed").glob(f"*_{v}.webp")) for v in ("large", "medium")}
        figures |= {f"bytes_{v}": sum(path.stat().st_size for path in paths) for v, paths in made.items()}
        shutil.rmtree(data)
        return figures | {"photos": len(made["large"]), "failed": [], "version": workshop.our_versions()}

    return Engine("ingest", "the whole pipeline with store and log; faces off", [{"jobs": cores}], start)


def _python(contestant):
    return [str(workshop.PYTHON / "bin" / "python"), "-B", str(HOME / "contestants" / contestant)]


def _rival(command, form, **more):
    def start(row, photos, way, out):
        large, medium = asdict(row.large), asdict(row.medium)
        job = {"form": form, "photos": photos, "out": out and str(out), "large": large, "medium": medium, **way, **more}
        return _figures([*command, json.dumps(job)])

    return start


def self_test():
    """A process and its child have their memory summed."""
    each = 64 << 20
    hold = f"held = b'x' * {each}; import time; time.sleep(0.5)"
    both = f"import os\nchild = os.fork()\n{hold}\nchild and os.wait()"
    taken = _figures([sys.executable, "-B", HOME / "contestants" / "whole.py", sys.executable, "-c", both])
    assert taken["rss"] > 2 * each, f"{taken['rss']} bytes of {2 * each}"


def _figures(command, settings=None):
    """The last line that a contestant prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARKS_", "VIPS_"))}
    # Room for every clone in flight; it is node's own default on few cores.
    environment |= {"UV_THREADPOOL_SIZE": str(max(4, 2 * len(os.sched_getaffinity(0)))), **(settings or {})}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
