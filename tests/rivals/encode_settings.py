"""Encoder settings of the comparison."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class VariantSettings:
    """Size and encoder settings of a WebP variant. Photos are never enlarged."""

    fit: str
    size: int
    quality: float
    effort: int
    sharp_yuv: bool = False

    def __str__(self):
        sharp = ", sharp YUV" if self.sharp_yuv else ""
        return f"{self.size} {self.fit}, quality {self.quality}, effort {self.effort}{sharp}"


@dataclass(frozen=True)
class SettingsRow:
    """Settings of the other libraries, and of sparks."""

    name: str
    large: VariantSettings
    medium: VariantSettings
    our_large: VariantSettings
    our_medium: VariantSettings


def standard():
    """The same settings for all engines."""
    large, medium = VariantSettings("inside", 2048, 80, 4), VariantSettings("inside", 800, 80, 4)
    return SettingsRow("standard", large, medium, large, medium)


def platform(our_effort, our_sharp_yuv):
    """The platform's settings for the other libraries, and settings of sparks that give the same bytes and SSIM.

    Effort 6 costs time to save bytes at the same quality; a slightly lower quality saves the same bytes without it.
    """
    large, medium = VariantSettings("inside", 1920, 95, 6, True), VariantSettings("cover", 400, 85, 6, True)
    ours = {"effort": our_effort, "sharp_yuv": our_sharp_yuv}
    return SettingsRow("platform", large, medium, replace(large, quality=94.5, **ours), replace(medium, quality=84.7, **ours))
