//! The built-in models give the outputs of the published ones in another runtime (onnxruntime).

use rten_tensor::NdTensor;
use serde_json::Value;

use super::align::AlignedCrop;
use super::embed::to_tensor;
use super::fuse::normalize;
use super::models::{CENTERFACE, DLIB, EMOTION, FACERES, MOBILEFACENET, Model, SFACE};
use super::network::Network;
use super::thread_pools::ThreadPools;

const TOLERANCE: f32 = 1e-3;

fn golden(name: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("../../tests/local/golden.json")).expect("JSON");
    all[name].clone()
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number") as f32).collect()
}

/// Returns a square of the portrait.
fn square(x: u32, y: u32, side: u32) -> AlignedCrop {
    let portrait = include_bytes!("../../../../tests/photos/collins.png");
    let portrait = image::load_from_memory(portrait).expect("an image").into_rgb8();
    let rgb = (0..side * side).map(|n| portrait.get_pixel(x + n % side, y + n / side).0.map(f32::from));
    AlignedCrop { side: side as usize, rgb: rgb.collect() }
}

fn run<const N: usize>(model: &Model, outputs: [&str; N], input: NdTensor<f32, 4>) -> [Vec<f32>; N] {
    Network::load(model, outputs).expect("a model").run(input, &ThreadPools::default().acquire())
}

#[track_caller]
fn check(name: &str, found: &[f32]) {
    let expected = numbers(&golden(name));
    assert_eq!(found.len(), expected.len());
    let largest = found.iter().zip(&expected).fold(0.0_f32, |largest, (a, b)| largest.max((a - b).abs()));
    assert!(largest < TOLERANCE, "{name} differs by {largest}");
}

#[test]
fn centerface() {
    let heads = run(&CENTERFACE, ["537", "538", "539", "540"], to_tensor::<3>(&square(20, 10, 256), |rgb| rgb));
    let cells = 64 * 64;
    let golden = golden("centerface");
    let faces = golden.as_array().expect("cells");
    assert_eq!(heads[0].iter().filter(|score| **score > 0.2).count(), faces.len());
    for cell in faces.iter().map(numbers) {
        let at = cell[0] as usize * 64 + cell[1] as usize;
        let found = heads.iter().flat_map(|head| head.iter().skip(at).step_by(cells));
        assert!(found.zip(&cell[2..]).all(|(a, b)| (a - b).abs() < TOLERANCE), "{cell:?}");
    }
}

#[test]
fn dlib() {
    let [vector] = run(&DLIB, ["embedding"], to_tensor::<3>(&square(70, 40, 150), |rgb| rgb));
    check("dlib_resnet_v1", &normalize(vector));
}

#[test]
fn sface() {
    let [vector] = run(&SFACE, ["fc1"], to_tensor::<3>(&square(90, 60, 112), |rgb| rgb));
    // Weights are stored as bytes, so the vector differs a little from that of the published model.
    let cosine: f32 = normalize(vector).iter().zip(numbers(&golden("sface"))).map(|(a, b)| a * b).sum();
    assert!(cosine > 0.998, "{cosine}");
}

#[test]
fn mobilefacenet() {
    let bgr = |[r, g, b]: [f32; 3]| [b, g, r].map(|channel| (channel - 127.0) / 128.0);
    let [vector] = run(&MOBILEFACENET, ["output"], to_tensor::<3>(&square(90, 60, 112), bgr));
    check("mobilefacenet", &normalize(vector));
}

#[test]
fn faceres() {
    let bgr = |[r, g, b]: [f32; 3]| [b - 103.939, g - 116.779, r - 123.68];
    let outputs = ["out_gender_pred_Sigmoid", "out_age_pred_Softmax"];
    let [gender, ages] = run(&FACERES, outputs, to_tensor::<3>(&square(40, 20, 224), bgr));
    check("faceres_gender", &gender);
    check("faceres_ages", &ages);
}

#[test]
fn emotion() {
    let grey = |[r, g, b]: [f32; 3]| [(0.2989 * r + 0.587 * g + 0.114 * b) / 127.5 - 1.0];
    let [probabilities] = run(&EMOTION, ["out_Identity"], to_tensor::<1>(&square(90, 60, 64), grey));
    check("emotion", &probabilities);
}

#[test]
fn the_notice_names_every_model_with_its_digest_and_licence() {
    let notice = include_str!("../../models/NOTICE.md");
    for model in super::models() {
        assert!(notice.contains(&format!("| `{}.onnx` | `{}` |", model.name, model.sha256())), "{}", model.name);
        assert!(notice.contains(model.licence.trim_end_matches("-1.0")), "{}", model.name);
    }
}
