"""Makes the shipped models from the published ones: large weights are stored as f16, and the graph casts them back to f32.

The largest weight of dlib is stored as 8 bits a number and a scale a channel. Names and shapes that no runtime needs are left
out. Nothing else changes, so any ONNX runtime opens them, and the arithmetic stays f32.

    python compact.py FOLDER_OF_THE_PUBLISHED_MODELS

Needs onnx, onnxruntime, numpy and opencv-python. Prints how far the outputs of both are from each other on a portrait,
relative to the largest output. Signatures are compared as unit vectors, and what CenterFace says of places without a face
counts only in its heat map.
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
# Small enough to ship as it is; rounding would move its answers by more than the tolerance.
UNCHANGED = ["emotion"]
EMBEDDERS = ["dlib_resnet_v1", "mobilefacenet"]
TOLERANCE = 1e-3
# Biases, first layers and depthwise layers are small, and most of what rounding would cost is in them.
SMALL = 4096
PORTRAIT = Path(__file__).parents[3] / "tests/photos/collins.png"


# More of its weights in bytes would cost more than the tolerance.
BYTES = "dlib_resnet_v1"


def compact(model, in_bytes=False):
    """Stores every large f32 weight as f16 behind a cast, and with `in_bytes` the largest as bytes."""
    casts, weights = [], []
    largest = max((t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT), key=lambda t: np.prod(t.dims))
    for tensor in model.graph.initializer:
        if in_bytes and tensor is largest:
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
    """The largest difference of any output, relative to that output's largest value."""
    a, b = (onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]) for path in (published, compacted))
    channels, height, width = (d if isinstance(d, int) else 256 for d in a.get_inputs()[0].shape[1:])
    picture = cv2.resize(cv2.imread(str(PORTRAIT)), (width, height)).astype(np.float32).transpose(2, 0, 1)[None, :channels]
    if published.stem in ("emotion", "mobilefacenet"):
        picture = (picture - 127) / 128
    if published.stem == "faceres":
        picture -= np.float32([103.939, 116.779, 123.68])[:, None, None]
    a, b = (m.run(None, {m.get_inputs()[0].name: picture}) for m in (a, b))
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
        onnx.save(model if name in UNCHANGED else compact(model, name == BYTES), path)
        far = difference(published / path.name, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{name:16} {path.stat().st_size:9} bytes  {far:.1e}  {digest}")
        assert far < TOLERANCE, name


if __name__ == "__main__":
    main()
