"""Builds the shipped models from the published ones: large weights are stored as f16, and the graph casts them back to f32.

The largest weight of dlib is stored as 8 bits per number and a scale per channel. Names and shapes that no runtime needs are
dropped. Nothing else changes, so any ONNX runtime opens them, and the arithmetic stays f32.

    python compact.py FOLDER_OF_THE_PUBLISHED_MODELS

Needs onnx, onnxruntime, numpy and opencv-python. Prints the largest difference of the outputs on a portrait,
relative to the largest output. Embeddings are compared as unit vectors; cells of CenterFace without a face
count only in its heat map.
"""

import hashlib
import sys
from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NAMES = ["centerface", "dlib_resnet_v1", "mobilefacenet", "faceres"]
# Small enough to ship unchanged; rounding would change its outputs by more than the tolerance.
UNCHANGED = ["emotion"]
EMBEDDERS = ["dlib_resnet_v1", "mobilefacenet"]
TOLERANCE = 1e-3
# Biases, first layers and depthwise layers are small and the most sensitive to rounding.
SMALL = 4096
PORTRAIT = Path(__file__).parents[3] / "tests/photos/collins.png"


# The only model whose largest weight can be stored as bytes within the tolerance.
INT8_MODEL = "dlib_resnet_v1"


def compact(model, as_int8=False):
    """Stores every large f32 weight as f16 behind a cast, and with `as_int8` the largest as 8-bit integers."""
    casts, weights = [], []
    largest = max((t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT), key=lambda t: np.prod(t.dims))
    for tensor in model.graph.initializer:
        if as_int8 and tensor is largest:
            weight = numpy_helper.to_array(tensor)
            scale = (np.abs(weight).max(axis=(1, 2, 3)) / 127).astype(np.float32)
            number = np.round(weight / scale[:, None, None, None]).astype(np.int8)
            parts = {"i8": number, "scale": scale, "zero": np.zeros(len(scale), np.int8)}
            parts = [numpy_helper.from_array(part, f"{tensor.name}_{name}") for name, part in parts.items()]
            casts.append(helper.make_node("DequantizeLinear", [part.name for part in parts], [tensor.name], axis=0))
            weights += parts
            continue
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= SMALL:
            half = numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name + "_f16")
            casts.append(helper.make_node("Cast", [half.name], [tensor.name], to=TensorProto.FLOAT))
            tensor = half
        weights.append(tensor)
    inputs = [i for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}]
    nodes = casts + list(model.graph.node)
    for field, items in (("input", inputs), ("initializer", weights), ("node", nodes)):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(items)
    model.graph.ClearField("value_info")
    for node in model.graph.node:
        node.ClearField("name")
        node.ClearField("doc_string")
    onnx.checker.check_model(model)
    return model


def difference(published, compacted):
    """Returns the largest difference of any output, relative to that output's largest value."""
    a, b = (onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]) for path in (published, compacted))
    channels, height, width = (d if isinstance(d, int) else 256 for d in a.get_inputs()[0].shape[1:])
    image = cv2.resize(cv2.imread(str(PORTRAIT)), (width, height)).astype(np.float32).transpose(2, 0, 1)[None, :channels]
    if published.stem in ("emotion", "mobilefacenet"):
        image = (image - 127) / 128
    if published.stem == "faceres":
        image -= np.float32([103.939, 116.779, 123.68])[:, None, None]
    a, b = (m.run(None, {m.get_inputs()[0].name: image}) for m in (a, b))
    if published.stem == "centerface":
        face = a[0][0, 0] > 0.2
        a, b = ([m[0]] + [output[..., face] for output in m[1:]] for m in (a, b))
    if published.stem in EMBEDDERS:
        a, b = ([output / np.linalg.norm(output) for output in m] for m in (a, b))
        return max(float(np.abs(x - y).max()) for x, y in zip(a, b))
    return max(float(np.abs(x - y).max() / np.abs(x).max()) for x, y in zip(a, b))


def main():
    published, here = Path(sys.argv[1]), Path(__file__).parent
    for name in NAMES + UNCHANGED:
        path = here / f"{name}.onnx"
        model = onnx.load(published / path.name)
        onnx.save(model if name in UNCHANGED else compact(model, name == INT8_MODEL), path)
        largest = difference(published / path.name, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{name:16} {path.stat().st_size:9} bytes  {largest:.1e}  {digest}")
        assert largest < TOLERANCE, name


if __name__ == "__main__":
    main()
