"""The figures as text."""

EXPLANATION = """\
Each engine is a process of its own and reads the photos from disk (cached); the engines run in turns. How many photos
in flight with how many threads is best for a rival was tried before. photos/s: wall time of the work alone, without
start-up. CPU: user and system time of the work, all threads and children. RSS: the peak of the process, children added.
`ingest` is the exception: all of its processes, start-up included; its memory is the largest sum of the worker and those that
decode for it, looked at every 20 ms, with shared pages once (PSS).
x is the ratio to the best form of sharp, the median over rounds (min..max). SSIM: 11 x 11 Gaussian, mean over photos,
against Lanczos in floats from the full original; d is the distance to the best form of sharp."""


def opening(setting):
    """What is compared on what."""
    lines = [f"{setting['photos']}; {setting['rounds']} rounds; {setting['machine']}"]
    lines += [f"left out: {reason}" for reason in setting["left_out"]]
    return "\n".join([*lines, EXPLANATION])


def row(result, per_photo=False):
    """One row of settings: what each side did, what it took, how good it is."""
    ours, rivals = (" / ".join(result["settings"][side]) for side in ("ours", "rivals"))
    settings = f"everybody: {rivals}" if ours == rivals else f"rivals: {rivals}\nours:   {ours}"
    parts = [f"\n== {result['row']} ==\n{settings}", _sides(result), _costs(result), _quality(result)]
    if per_photo:
        parts.append(_list(result))
    return "\n\n".join(parts)


def _sides(result):
    lines = [["engine", "form", "in flight", "version"]]
    lines += [[made["engine"], made["form"], made["way"], made["version"]] for made in result["engines"]]
    return _table(lines, left=4)


def _costs(result):
    lines = [["engine", "photos/s", "x", "CPU ms/photo", "x", "peak RSS MB", "x", "bytes", "x"]]
    for made in result["engines"]:
        median, ratio = made["median"], made["ratio"]
        lines.append([
            _named(made, result),
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
    heads = [f"{variant} {('luma', 'RGB')[at]}" for variant, at in columns]
    lines = [["SSIM", *(text for head in heads for text in (head, "d"))]]
    base = next(made for made in result["engines"] if made["engine"] == result["base"])["ssim"]
    for made in result["engines"]:
        cells = [_named(made, result)]
        for variant, at in columns:
            score = made["ssim"] and made["ssim"][variant][at]
            cells += [f"{score:.4f}", f"{score - base[variant][at]:+.4f}"] if score and base else ["-", "-"]
        lines.append(cells)
    return _table(lines)


def _list(result):
    judged = [made for made in result["engines"] if made["ssim_per_photo"]]
    lines = [["SSIM, RGB, large / medium", *(made["engine"] for made in judged)]]
    for photo in judged[0]["ssim_per_photo"] if judged else []:
        scores = [made["ssim_per_photo"][photo] for made in judged]
        lines.append([photo, *(f"{score['large'][1]:.4f} / {score['medium'][1]:.4f}" for score in scores)])
    return _table(lines)


def _named(made, result):
    return made["engine"] + (" = 1" if made["engine"] == result["base"] else "")


def _spread(ratio):
    middle, least, most = ratio
    return f"{middle:.2f} ({least:.2f}..{most:.2f})"


def _table(lines, left=1):
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    rule = ["-" * width for width in widths]

    def aligned(line):
        cells = [cell.ljust(w) if at < left else cell.rjust(w) for at, (cell, w) in enumerate(zip(line, widths))]
        return "  ".join(cells).rstrip()

    return "\n".join(aligned(line) for line in [lines[0], rule, *lines[1:]])
