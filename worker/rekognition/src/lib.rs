//! Rekognition's protocol, spoken by a face engine of our own.
