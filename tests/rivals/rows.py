"""The settings that all engines are given."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Picture:
    """A WebP to make; no photo is ever enlarged."""

    fit: str
    size: int
    quality: float
    effort: int
    sharp_yuv: bool = False

    def __str__(self):
        sharp = ", sharp YUV" if self.sharp_yuv else ""
        return f"{self.size} {self.fit}, quality {self.quality}, effort {self.effort}{sharp}"


@dataclass(frozen=True)
class Row:
    """What rivals are to make, and what we make."""

    name: str
    large: Picture
    medium: Picture
    our_large: Picture
    our_medium: Picture


def standard():
    """The same settings for everybody."""
    large, medium = Picture("inside", 2048, 80, 4), Picture("inside", 800, 80, 4)
    return Row("standard", large, medium, large, medium)


def platform(our_effort, our_sharp_yuv):
    """The rivals as the platform has them; we choose our own way to the same bytes and SSIM.

    Effort 6 spends its time on fewer bytes for the same picture. A little less quality comes to the same.
    """
    large, medium = Picture("inside", 1920, 95, 6, True), Picture("cover", 400, 85, 6, True)
    ours = {"effort": our_effort, "sharp_yuv": our_sharp_yuv}
    return Row("platform", large, medium, replace(large, quality=94.5, **ours), replace(medium, quality=84.7, **ours))
