"""The engines that are compared, and how each is started."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field

import installation
from installation import HOME, TARGET

NAMES = ["ours", "turbo", "sharp-clones", "sharp-chained", "pyvips-clones", "pyvips-chained", "pillow", "ingest"]

TURBO = "one decode; libjpeg-turbo for baseline at 5/8 or more, the decoder in Rust otherwise"


@dataclass(frozen=True)
class Engine:
    """One form of using a library. The fastest of `parallelism_options` is determined before the comparison."""

    name: str
    form: str
    parallelism_options: list
    start: object = field(repr=False)

    def run(self, row, photos, parallelism, out=None):
        """Runs one process over the photos and returns its figures."""
        return self.start(row, [str(photo) for photo in photos], parallelism, out)


def engine(name, cores):
    """Returns the engine of this name. Raises `MissingDependency` if it cannot be installed."""
    if name == "ours":
        return _ours(name, installation.render(), cores, "one decode, by a decoder in Rust")
    if name == "turbo":
        return _ours(name, installation.render_turbo(), cores, TURBO)
    if name == "ingest":
        return _ingest(cores)
    library, _, form = name.partition("-")
    return {"sharp": _sharp, "pyvips": _pyvips, "pillow": _pillow}[library](name, form, cores)


def supports_sharp_yuv(names):
    """Returns whether the image processor among these engines supports sharp YUV."""
    programs = {"ours": "render", "turbo": "render-turbo"}
    program = next((installation.PROGRAMS / programs[name] for name in names if name in programs), None)
    if program is None:
        return False
    return "sharp" in subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout


def _ours(name, program, cores, form):
    def start(row, photos, parallelism, out):
        spec = lambda v: f"{v.fit}:{v.size}:q{v.quality}:m{v.effort}" + (":sharp" if v.sharp_yuv else "")
        command = [program, "--threads", str(parallelism["threads"]), "--large", spec(row.our_large)]
        command += ["--medium", spec(row.our_medium), *(["--out", str(out)] if out else []), *photos]
        return _run(command) | {"version": installation.sparks_versions()}

    return Engine(name, form, [{"threads": cores}], start)


def _sharp(name, form, cores):
    home = str(installation.node_with_sharp())
    texts = {
        "clones": "two clones of one pipeline, each decodes with shrink-on-load",
        "chained": "one decode with shrink-on-load; medium from the pixels of large",
    }
    options = [(1, cores), (cores, 1), (cores, cores)]
    options = [{"concurrency": threads, "in_flight": photos} for threads, photos in options]
    start = _library(["node", HOME / "runners" / "sharp.mjs"], form, home=home)
    return Engine(name, texts[form], options, start)


def _pyvips(name, form, cores):
    texts = {
        "clones": "two thumbnails of the file, each decodes with shrink-on-load",
        "chained": "one thumbnail with shrink-on-load; medium from its pixels",
    }
    options = [("threads", 1, cores), ("threads", cores, cores), ("processes", 1, cores)]
    options = [{"pool": pool, "concurrency": threads, "in_flight": photos} for pool, threads, photos in options]
    return Engine(name, texts[form], options, _library(_python("vips.py"), form))


def _pillow(name, form, cores):
    options = [{"pool": pool, "in_flight": cores} for pool in ("threads", "processes")]
    form = "one decode, reduced by draft(); medium from large; no sharp YUV"
    return Engine(name, form, options, _library(_python("pillow.py"), form))


def _ingest(cores):
    """`sparks ingest` into a new data folder: start-up, hashes, store and event log included."""
    program = str(installation.sparks())
    defaults = (installation.ROOT / "config" / "default.toml").read_text()

    def start(row, photos, parallelism, _out):
        data = TARGET / "ingested"
        shutil.rmtree(data, ignore_errors=True)
        settings = {}
        for name, variant in (("LARGE", row.our_large), ("MEDIUM", row.our_medium)):
            values = {"FIT": variant.fit, "WIDTH": variant.size, "HEIGHT": variant.size}
            values |= {"QUALITY": variant.quality, "METHOD": variant.effort}
            if "sharp_yuv" in defaults:
                values["SHARP_YUV"] = str(variant.sharp_yuv).lower()
            settings |= {f"SPARKS_VARIANTS_{name}_{key}": str(value) for key, value in values.items()}
        command = [program, "ingest", "--data", data, "--faces", "off", "--jobs", parallelism["jobs"], "--json", *photos]
        figures = _run([*_python("process_usage.py"), *command], settings)
        variants = {v: sorted((data / "objects" / "processed").glob(f"*_{v}.webp")) for v in ("large", "medium")}
        figures |= {f"bytes_{v}": sum(path.stat().st_size for path in paths) for v, paths in variants.items()}
        shutil.rmtree(data)
        return figures | {"photos": len(variants["large"]), "failed": [], "version": installation.sparks_versions()}

    return Engine("ingest", "the whole pipeline with store and event log; faces off", [{"jobs": cores}], start)


def _python(runner):
    return [str(installation.PYTHON / "bin" / "python"), "-B", str(HOME / "runners" / runner)]


def _library(command, form, **fields):
    def start(row, photos, parallelism, out):
        job = {"form": form, "photos": photos, "out": out and str(out), **parallelism, **fields}
        job |= {"large": asdict(row.large), "medium": asdict(row.medium)}
        return _run([*command, json.dumps(job)])

    return start


def self_test():
    """Checks that the memory of a process and its child is summed."""
    size = 64 << 20
    allocate = f"memory = b'x' * {size}; import time; time.sleep(0.5)"
    both = f"import os\nchild = os.fork()\n{allocate}\nchild and os.wait()"
    usage = _run([sys.executable, "-B", HOME / "runners" / "process_usage.py", sys.executable, "-c", both])
    assert usage["rss"] > 2 * size, f"{usage['rss']} of {2 * size} bytes"


def _run(command, settings=None):
    """Runs a command and returns the figures that it prints as JSON on its last line."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARKS_", "VIPS_"))}
    # One libuv thread per sharp clone in flight; at least node's default of 4.
    environment |= {"UV_THREADPOOL_SIZE": str(max(4, 2 * len(os.sched_getaffinity(0)))), **(settings or {})}
    process = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if process.returncode:
        raise SystemExit(f"{command[0]} exited with {process.returncode}:\n{process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])
