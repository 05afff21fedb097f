"""Writes the small images of corpus/photo by Pillow, and the EXIF of corpus/exif: python corpus.py"""

import pathlib

from PIL import Image, PngImagePlugin

HERE = pathlib.Path(__file__).parent / "corpus"
SIZE = (20, 14)


def sample(mode):
    rgba = Image.new("RGBA", SIZE)
    for x in range(SIZE[0]):
        for y in range(SIZE[1]):
            rgba.putpixel((x, y), (x * 12, y * 18, (x * y) % 256, 255 if x < 12 else y * 18))
    return rgba.convert(mode)


def save(name, image, **options):
    image.save(HERE / "photo" / name, **options)


def exif(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x0132] = "2014:05:01 10:20:30"
    exif.get_ifd(0x8769).update({0x9003: "2014:05:01 10:20:30", 0x9011: "+02:00"})
    return exif.tobytes()


def jpegs():
    rgb = sample("RGB")
    save("baseline.jpg", rgb, quality=60)
    save("full_colours.jpg", rgb, quality=60, subsampling=0)
    save("halved.jpg", rgb, quality=60, subsampling=1)
    save("progressive.jpg", rgb, quality=60, progressive=True)
    save("restarts.jpg", rgb, quality=60, restart_marker_blocks=1)
    save("progressive_restarts.jpg", rgb, quality=60, progressive=True, restart_marker_blocks=2)
    save("grey.jpg", sample("L"), quality=60)
    save("grey_progressive.jpg", sample("L"), quality=60, progressive=True)
    save("cmyk.jpg", sample("CMYK"), quality=60)
    save("cmyk_progressive.jpg", sample("CMYK"), quality=60, progressive=True)
    save("exif.jpg", rgb, quality=60, exif=exif(6))
    save("comment_icc.jpg", rgb, quality=60, comment=b"hello", icc_profile=b"\0" * 132)


def pngs():
    for mode in ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]:
        save(f"{mode.replace(';', '_')}.png", sample("L").convert("I").convert("I;16") if mode == "I;16" else sample(mode))
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Title", "a picture", zip=True)
    texts.add_itxt("Comment", "ein Bild", "de", "Kommentar", zip=True)
    save("texts.png", sample("RGB"), pnginfo=texts, exif=exif(8), icc_profile=b"\0" * 132)
    save("animated.png", sample("RGBA"), save_all=True, append_images=[sample("RGBA").rotate(180)], duration=50)
    save("holes.png", sample("P"), transparency=3)


def gifs():
    save("still.gif", sample("P"))
    save("interlaced.gif", sample("P"), interlace=1)
    save("animated.gif", sample("P"), save_all=True, append_images=[sample("P").rotate(180)], duration=50, loop=0)
    save("holes.gif", sample("P"), transparency=3)


def webps():
    save("lossy.webp", sample("RGB"), quality=40)
    save("lossy_alpha.webp", sample("RGBA"), quality=40)
    save("lossless.webp", sample("RGB"), lossless=True)
    save("lossless_alpha.webp", sample("RGBA"), lossless=True, exact=True)
    save("exif.webp", sample("RGB"), quality=40, exif=exif(3), icc_profile=b"\0" * 132)
    for name, options in {"lossy": {"quality": 40}, "lossless": {"lossless": True}}.items():
        frames = [sample("RGBA"), sample("RGBA").rotate(180)]
        save(f"animated_{name}.webp", frames[0], save_all=True, append_images=frames[1:], duration=50, **options)


if __name__ == "__main__":
    jpegs()
    pngs()
    gifs()
    webps()
    for orientation in (1, 6):
        (HERE / "exif" / f"orientation_{orientation}.tiff").write_bytes(exif(orientation).removeprefix(b"Exif\0\0"))
