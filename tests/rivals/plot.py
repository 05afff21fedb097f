"""Plots the figures."""

import textwrap

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402: imported after the backend is selected

PANELS = [
    ("photos_per_second", "photos/s\nlonger is better"),
    ("cpu_per_photo", "CPU per photo\nshorter is better"),
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


def draw(setup, results, path):
    """Draws a line of panels per row of settings. Bars are ratios to the best form of sharp, whiskers the range of all rounds."""
    figure, axes = pyplot.subplots(
        len(results), len(PANELS) + 1, figsize=(19, 1.4 + 3.9 * len(results)), squeeze=False, layout="constrained"
    )
    for result, line in zip(results, axes):
        engines = result["engines"][::-1]
        for axis, (metric, title) in zip(line, PANELS):
            _bars(axis, engines, metric, title, result["base"])
        _quality(line[-1], engines)
        line[0].set_ylabel(result["row"], fontsize=13, fontweight="bold")
        line[0].set_yticks(range(len(engines)), [each["engine"] for each in engines])
        for axis in line[1:]:
            axis.set_yticks(range(len(engines)), [])
    figure.suptitle("Ratios to the best form of sharp (= 1); whiskers: range of all rounds", fontsize=14)
    about = f"{setup['photos']}; {setup['rounds']} rounds; {setup['machine']}"
    settings = [_settings(result) for result in results]
    figure.supxlabel("\n".join(textwrap.fill(text, 200) for text in [about, *settings]), fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _settings(result):
    ours, rivals = (" / ".join(result["settings"][side]) for side in ("ours", "rivals"))
    return f"{result['row']}: {ours}" if ours == rivals else f"{result['row']}: ours {ours}; rivals {rivals}"


def _bars(axis, engines, metric, title, base):
    medians = [each["ratio"][metric][0] for each in engines]
    below = [each["ratio"][metric][0] - each["ratio"][metric][1] for each in engines]
    above = [each["ratio"][metric][2] - each["ratio"][metric][0] for each in engines]
    colours = [_colour(each["engine"]) for each in engines]
    axis.barh(range(len(engines)), medians, xerr=[below, above], color=colours, ecolor="#555555", capsize=2)
    axis.axvline(1, color="black", linewidth=0.8, linestyle="--")
    widest = max(median + whisker for median, whisker in zip(medians, above))
    for at, (each, median, whisker) in enumerate(zip(engines, medians, above)):
        weight = "bold" if each["engine"] == base else "normal"
        axis.text(median + whisker + widest * 0.02, at, _format_ratio(metric, median), va="center", fontsize=9, fontweight=weight)
    axis.set_xlim(0, widest * 1.16)
    axis.set_title(title, fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def _quality(axis, engines):
    """Draws points instead of bars: differences are small, and the axis does not start at zero."""
    for variant, marker in (("large", "o"), ("medium", "D")):
        points = [(y, each) for y, each in enumerate(engines) if each["ssim"]]
        scores = [each["ssim"][variant][1] for _, each in points]
        colours = [_colour(each["engine"]) for _, each in points]
        axis.scatter(scores, [y for y, _ in points], marker=marker, c=colours, s=42, zorder=3)
        axis.scatter([], [], marker=marker, c="#777777", s=42, label=variant)
        for score, (y, _) in zip(scores, points):
            axis.annotate(f"{score:.4f}", (score, y), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8)
    axis.set_title("SSIM (RGB) to the float reference\nfarther right is better", fontsize=10)
    axis.margins(x=0.18, y=0.1)
    axis.grid(axis="x", linewidth=0.4)
    axis.spines[["top", "right"]].set_visible(False)
    axis.locator_params(axis="x", nbins=4)
    axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=2, frameon=False)


def _format_ratio(metric, ratio):
    return f"{ratio:.3f}" if metric == "bytes" else f"{ratio:.2f}"


def _colour(engine):
    return COLOURS.get(engine) or COLOURS[engine.partition("-")[0]]
