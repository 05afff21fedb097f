"""The figures as a picture."""

import textwrap

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402: the backend is chosen first

PANELS = [
    ("photos_per_second", "photos/s\nlonger is better"),
    ("cpu_per_photo", "CPU a photo\nshorter is better"),
    ("rss", "peak RSS\nshorter is better"),
    ("bytes", "bytes\nat the SSIM on the right"),
]
COLOURS = {
    "ours": "#d1495b",
    "turbo": "#a4243b",
    "ingest": "#e8998d",
    "sharp": "#30638e",
    "pyvips": "#66a182",
    "pillow": "#c9a227",
}


def draw(setting, results, path):
    """One line of panels for each row of settings; bars are ratios to the best form of sharp, whiskers all rounds."""
    figure, axes = pyplot.subplots(
        len(results), len(PANELS) + 1, figsize=(19, 1.4 + 3.9 * len(results)), squeeze=False, layout="constrained"
    )
    for result, line in zip(results, axes):
        made = result["engines"][::-1]
        for axis, (cost, title) in zip(line, PANELS):
            _bars(axis, made, cost, title, result["base"])
        _quality(line[-1], made)
        line[0].set_ylabel(result["row"], fontsize=13, fontweight="bold")
        line[0].set_yticks(range(len(made)), [each["engine"] for each in made])
        for axis in line[1:]:
            axis.set_yticks(range(len(made)), [])
    figure.suptitle("Ratios to the best form of sharp (= 1); whiskers: all rounds", fontsize=14)
    about = f"{setting['photos']}; {setting['rounds']} rounds; {setting['machine']}"
    settings = [_settings(result) for result in results]
    figure.supxlabel("\n".join(textwrap.fill(text, 200) for text in [about, *settings]), fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _settings(result):
    ours, rivals = (" / ".join(result["settings"][side]) for side in ("ours", "rivals"))
    return f"{result['row']}: {ours}" if ours == rivals else f"{result['row']}: ours {ours}; rivals {rivals}"


def _bars(axis, made, cost, title, base):
    middles = [each["ratio"][cost][0] for each in made]
    below = [each["ratio"][cost][0] - each["ratio"][cost][1] for each in made]
    above = [each["ratio"][cost][2] - each["ratio"][cost][0] for each in made]
    colours = [_colour(each["engine"]) for each in made]
    axis.barh(range(len(made)), middles, xerr=[below, above], color=colours, ecolor="#555555", capsize=2)
    axis.axvline(1, color="black", linewidth=0.8, linestyle="--")
    widest = max(middle + more for middle, more in zip(middles, above))
    for at, (each, middle, more) in enumerate(zip(made, middles, above)):
        weight = "bold" if each["engine"] == base else "normal"
        axis.text(middle + more + widest * 0.02, at, _short(cost, middle), va="center", fontsize=9, fontweight=weight)
    axis.set_xlim(0, widest * 1.16)
    axis.set_title(title, fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def _quality(axis, made):
    """Points, not bars: the distances are small and nobody's zero is of interest."""
    for variant, at, marker, text in (("large", 1, "o", "large"), ("medium", 1, "D", "medium")):
        places = [(place, each) for place, each in enumerate(made) if each["ssim"]]
        scores = [each["ssim"][variant][at] for _, each in places]
        colours = [_colour(each["engine"]) for _, each in places]
        axis.scatter(scores, [place for place, _ in places], marker=marker, c=colours, s=42, zorder=3)
        axis.scatter([], [], marker=marker, c="#777777", s=42, label=text)
        for score, (place, _) in zip(scores, places):
            axis.annotate(f"{score:.4f}", (score, place), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8)
    axis.set_title("SSIM (RGB) to the float reference\nfarther right is better", fontsize=10)
    axis.margins(x=0.18, y=0.1)
    axis.grid(axis="x", linewidth=0.4)
    axis.spines[["top", "right"]].set_visible(False)
    axis.locator_params(axis="x", nbins=4)
    axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=2, frameon=False)


def _short(cost, ratio):
    return f"{ratio:.3f}" if cost == "bytes" else f"{ratio:.2f}"


def _colour(engine):
    return COLOURS.get(engine) or COLOURS[engine.partition("-")[0]]
