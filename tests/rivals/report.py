"""Prints the figures as text tables."""

EXPLANATION = """\
Each engine is a separate process that reads the photos from disk (cached); runs are interleaved. The numbers of threads and of
photos in flight are the fastest for each library. photos/s: wall time without start-up. CPU: user and system time without
start-up, all threads and child processes. RSS: peak of the process plus those of its children.
`ingest` differs: start-up is included; memory is the peak sum (PSS, every 20 ms) of the worker and its decoder processes.
x: ratio to the best form of sharp, median of the rounds (min..max). SSIM: 11 x 11 Gaussian window, mean of the photos,
against Lanczos in floats from the full original; d: difference to the best form of sharp."""


def header(setup):
    """Returns the photos, the machine, and an explanation of the columns."""
    lines = [f"{setup['photos']}; {setup['rounds']} rounds; {setup['machine']}"]
    lines += [f"left out: {reason}" for reason in setup["left_out"]]
    return "\n".join([*lines, EXPLANATION])


def row(result, per_photo=False):
    """Returns the tables of one row of settings: engines, metrics, and SSIM."""
    ours, rivals = (" / ".join(result["settings"][side]) for side in ("ours", "rivals"))
    settings = f"all engines: {rivals}" if ours == rivals else f"rivals: {rivals}\nours:   {ours}"
    parts = [f"\n== {result['row']} ==\n{settings}", _engines(result), _metrics(result), _quality(result)]
    if per_photo:
        parts.append(_per_photo(result))
    return "\n\n".join(parts)


def _engines(result):
    lines = [["engine", "form", "parallelism", "version"]]
    lines += [[each["engine"], each["form"], each["way"], each["version"]] for each in result["engines"]]
    return _table(lines, left=4)


def _metrics(result):
    lines = [["engine", "photos/s", "x", "CPU ms/photo", "x", "peak RSS MB", "x", "bytes", "x"]]
    for each in result["engines"]:
        median, ratio = each["median"], each["ratio"]
        lines.append([
            _label(each, result),
            f"{median['photos_per_second']:.2f}",
            _spread(ratio["photos_per_second"]),
            f"{median['cpu_per_photo'] * 1000:.0f}",
            _spread(ratio["cpu_per_photo"]),
            f"{median['rss'] / 1e6:.0f}",
            _spread(ratio["rss"]),
            f"{median['bytes']:,.0f}",
            f"{ratio['bytes'][0]:.3f}",
        ])
    return _table(lines)


def _quality(result):
    columns = [(variant, at) for variant in ("large", "medium") for at in (0, 1)]
    headings = [f"{variant} {('luma', 'RGB')[at]}" for variant, at in columns]
    lines = [["SSIM", *(text for heading in headings for text in (heading, "d"))]]
    base = next(each for each in result["engines"] if each["engine"] == result["base"])["ssim"]
    for each in result["engines"]:
        cells = [_label(each, result)]
        for variant, at in columns:
            score = each["ssim"] and each["ssim"][variant][at]
            cells += [f"{score:.4f}", f"{score - base[variant][at]:+.4f}"] if score and base else ["-", "-"]
        lines.append(cells)
    return _table(lines)


def _per_photo(result):
    measured = [each for each in result["engines"] if each["ssim_per_photo"]]
    lines = [["SSIM, RGB, large / medium", *(each["engine"] for each in measured)]]
    for photo in measured[0]["ssim_per_photo"] if measured else []:
        scores = [each["ssim_per_photo"][photo] for each in measured]
        lines.append([photo, *(f"{score['large'][1]:.4f} / {score['medium'][1]:.4f}" for score in scores)])
    return _table(lines)


def _label(each, result):
    return each["engine"] + (" = 1" if each["engine"] == result["base"] else "")


def _spread(ratio):
    median, minimum, maximum = ratio
    return f"{median:.2f} ({minimum:.2f}..{maximum:.2f})"


def _table(lines, left=1):
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    separator = ["-" * width for width in widths]

    def aligned(line):
        cells = [cell.ljust(w) if at < left else cell.rjust(w) for at, (cell, w) in enumerate(zip(line, widths))]
        return "  ".join(cells).rstrip()

    return "\n".join(aligned(line) for line in [lines[0], separator, *lines[1:]])
