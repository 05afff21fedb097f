"""Detects faces with dlib's HOG detector in images upsampled once, computes their 128-dimensional embeddings, and prints the count."""

import sys

import dlib
import face_recognition_models
import numpy
from PIL import Image

detector = dlib.get_frontal_face_detector()
landmarks = dlib.shape_predictor(face_recognition_models.pose_predictor_five_point_model_location())
encoder = dlib.face_recognition_model_v1(face_recognition_models.face_recognition_model_location())
faces = 0
for path in sys.argv[1:]:
    pixels = numpy.asarray(Image.open(path).convert("RGB"))
    for box in detector(pixels, 1):
        encoder.compute_face_descriptor(pixels, landmarks(pixels, box))
        faces += 1
print(faces)
