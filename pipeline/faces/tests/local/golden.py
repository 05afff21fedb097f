"""Writes golden.json: the outputs of the published f32 models for squares of a portrait, computed by onnxruntime.

    python golden.py FOLDER_OF_THE_PUBLISHED_MODELS

Needs onnxruntime, numpy and opencv-python.
"""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

PORTRAIT = Path(__file__).parents[4] / "tests/photos/collins.png"
RGB = cv2.imread(str(PORTRAIT))[:, :, ::-1].astype(np.float32)


def square(x, y, side):
    """Returns a square of the portrait as a batch of one, with planar channels."""
    return RGB[y : y + side, x : x + side].transpose(2, 0, 1)[None].copy()


def run(name, image):
    model = onnxruntime.InferenceSession(str(Path(sys.argv[1]) / f"{name}.onnx"), providers=["CPUExecutionProvider"])
    return model.run(None, {model.get_inputs()[0].name: image})


def unit(vector):
    return (vector / np.linalg.norm(vector)).ravel()


def centerface():
    """Returns row, column, score, size, offset and landmarks of every cell with a face."""
    heads = run("centerface", square(20, 10, 256))
    cells = np.argwhere(heads[0][0, 0] > 0.2)
    return [[int(r), int(c)] + [float(v) for head in heads for v in head[0, :, r, c]] for r, c in cells]


def main():
    grey = (square(90, 60, 112) * np.float32([0.2989, 0.587, 0.114])[:, None, None]).sum(1, keepdims=True)[:, :, :64, :64]
    bgr = square(40, 20, 224)[:, ::-1] - np.float32([103.939, 116.779, 123.68])[:, None, None]
    gender, _, ages = run("faceres", bgr)
    golden = {
        "centerface": centerface(),
        "dlib_resnet_v1": unit(run("dlib_resnet_v1", square(70, 40, 150))[0]).tolist(),
        "mobilefacenet": unit(run("mobilefacenet", (square(90, 60, 112)[:, ::-1] - 127) / 128)[0]).tolist(),
        "sface": unit(run("face_recognition_sface_2021dec", square(90, 60, 112))[0]).tolist(),
        "faceres_gender": gender.ravel().tolist(),
        "faceres_ages": ages.ravel().tolist(),
        "emotion": run("emotion", grey / 127.5 - 1)[0].ravel().tolist(),
    }
    rounded = json.loads(json.dumps(golden), parse_float=lambda text: round(float(text), 5))
    (Path(__file__).parent / "golden.json").write_text(
        "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in rounded.items()) + "\n}\n"
    )


if __name__ == "__main__":
    main()
