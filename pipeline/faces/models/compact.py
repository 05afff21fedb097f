"""Builds the shipped models from the published ones: large weights are stored as f16, and the graph casts them back to f32.

The largest weight of dlib, and all large weights of SFace, are stored as 8 bits per number and a scale per channel. Batch
normalization of SFace is folded into the layers beside it. Names and shapes that no runtime needs are dropped. Nothing else
changes, so any ONNX runtime opens them, and the arithmetic stays f32.

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
import onnx.version_converter
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NAMES = ["centerface", "dlib_resnet_v1", "mobilefacenet", "faceres", "sface"]
# The published file of a model, where its name differs.
FILES = {"sface": "face_recognition_sface_2021dec"}
# Small enough to ship unchanged; rounding would change its outputs by more than the tolerance.
UNCHANGED = ["emotion"]
EMBEDDERS = ["dlib_resnet_v1", "mobilefacenet", "sface"]
TOLERANCE = 1e-3
# 8 bits in all layers change a unit vector more, and no accept rate (docs/decisions/0029).
TOLERANCES = {"sface": 2e-2}
# Biases, first layers and depthwise layers are small and the most sensitive to rounding.
SMALL = 4096
PORTRAIT = Path(__file__).parents[3] / "tests/photos/collins.png"


# The models whose largest weight, and whose large weights, are stored as bytes.
INT8_LARGEST = ["dlib_resnet_v1"]
INT8_ALL = ["sface"]


def fold_batch_normalization(model):
    """Folds every batch normalization into the convolution or matrix product before it, or into the matrix product after it."""
    graph = model.graph
    weights = {t.name: numpy_helper.to_array(t).copy() for t in graph.initializer}
    nodes = [node for node in graph.node]
    for dropout in [node for node in nodes if node.op_type == "Dropout"]:
        for node in nodes:
            node.input[:] = [dropout.input[0] if name == dropout.output[0] else name for name in node.input]
        nodes.remove(dropout)
    for norm in [node for node in nodes if node.op_type == "BatchNormalization"]:
        gamma, beta, mean, variance = (weights[name] for name in norm.input[1:])
        epsilon = next((a.f for a in norm.attribute if a.name == "epsilon"), 1e-5)
        factor = gamma / np.sqrt(variance + epsilon)
        offset = beta - mean * factor
        before = next(node for node in nodes if norm.input[0] in node.output)
        if before.op_type in ("Conv", "Gemm"):
            weight = weights[before.input[1]]
            weights[before.input[1]] = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
            bias = weights.get(before.input[2], 0) if len(before.input) > 2 else 0
            name = before.input[2] if len(before.input) > 2 else before.output[0] + "_bias"
            weights[name] = (bias * factor + offset).astype(np.float32)
            before.input[:] = [*before.input[:2], name]
            before.output[0] = norm.output[0]
        else:
            # A normalization, Flatten and a matrix product: each channel is a block of the columns.
            flatten = next(node for node in nodes if norm.output[0] in node.input)
            product = next(node for node in nodes if flatten.output[0] in node.input)
            weight = weights[product.input[1]]
            block = weight.shape[1] // len(factor)
            weights[product.input[2]] = (weights[product.input[2]] + weight @ np.repeat(offset, block)).astype(np.float32)
            weights[product.input[1]] = weight * np.repeat(factor, block)
            flatten.input[0] = norm.input[0]
        nodes.remove(norm)
    used = {name for node in nodes for name in node.input}
    for field, items in (
        ("node", nodes),
        ("initializer", [numpy_helper.from_array(w.astype(np.float32), n) for n, w in weights.items() if n in used]),
        ("input", [i for i in graph.input if i.name not in weights]),
    ):
        graph.ClearField(field)
        getattr(graph, field).extend(items)


def compact(model, name):
    """Stores every large f32 weight as f16 behind a cast, or as 8-bit integers."""
    casts, weights = [], []
    if name in INT8_ALL:
        fold_batch_normalization(model)
    largest = max((t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT), key=lambda t: np.prod(t.dims))
    for tensor in model.graph.initializer:
        is_large = tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= SMALL
        if (name in INT8_LARGEST and tensor is largest) or (name in INT8_ALL and is_large):
            weight = numpy_helper.to_array(tensor)
            scale = (np.abs(weight).max(axis=tuple(range(1, weight.ndim))) / 127).astype(np.float32)
            number = np.round(weight / scale.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.int8)
            parts = {"i8": number, "scale": scale, "zero": np.zeros(len(scale), np.int8)}
            parts = [numpy_helper.from_array(part, f"{tensor.name}_{part_name}") for part_name, part in parts.items()]
            casts.append(helper.make_node("DequantizeLinear", [part.name for part in parts], [tensor.name], axis=0))
            weights += parts
            continue
        if is_large:
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
    if compacted.stem in EMBEDDERS:
        a, b = ([output / np.linalg.norm(output) for output in m] for m in (a, b))
        return max(float(np.abs(x - y).max()) for x, y in zip(a, b))
    return max(float(np.abs(x - y).max() / np.abs(x).max()) for x, y in zip(a, b))


def main():
    published, here = Path(sys.argv[1]), Path(__file__).parent
    for name in NAMES + UNCHANGED:
        path, origin = here / f"{name}.onnx", published / f"{FILES.get(name, name)}.onnx"
        model = onnx.load(origin)
        if name in INT8_ALL:
            # DequantizeLinear with a scale per channel needs version 13.
            model = onnx.version_converter.convert_version(model, 13)
        onnx.save(model if name in UNCHANGED else compact(model, name), path)
        largest = difference(origin, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{name:16} {path.stat().st_size:9} bytes  {largest:.1e}  {digest}")
        assert largest < TOLERANCES.get(name, TOLERANCE), name


if __name__ == "__main__":
    main()
