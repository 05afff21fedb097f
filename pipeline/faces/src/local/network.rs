//! A model that is ready to run.

use rten::{ModelOptions, NodeId, op_registry};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::lanes::Lane;
use super::models::Model;

/// A model that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the model {model} cannot be loaded: {reason}")]
pub struct LoadError {
    model: &'static str,
    reason: String,
}

/// A loaded model with one input and `N` outputs.
pub struct Network<const N: usize> {
    model: rten::Model,
    input: NodeId,
    outputs: [NodeId; N],
}

impl<const N: usize> Network<N> {
    /// Loads a shipped model and looks up its outputs.
    pub fn load(model: &Model, outputs: [&str; N]) -> Result<Self, LoadError> {
        let error = |reason: String| LoadError { model: model.name, reason };
        let loaded = options().load_static_slice(model.bytes).map_err(|e| error(e.to_string()))?;
        let input = *loaded.input_ids().first().ok_or_else(|| error("no input".to_owned()))?;
        let found = outputs.map(|name| loaded.find_node(name));
        if let Some(missing) = found.iter().position(Option::is_none) {
            return Err(error(format!("no output {}", outputs[missing])));
        }
        // Every one is there, so the input never stands in.
        Ok(Self { model: loaded, input, outputs: found.map(|id| id.unwrap_or(input)) })
    }

    /// What the model says to this input. Panics where the input has not the shape the model was made for.
    pub fn run(&self, input: NdTensor<f32, 4>, lane: &Lane<'_>) -> [Vec<f32>; N] {
        self.model
            .run_n(vec![(self.input, input.into())], self.outputs, Some(lane.options()))
            .map(|outputs| outputs.map(|output| output.into_tensor::<f32>().expect("numbers").to_vec()))
            .expect("a shipped model runs on the shape it was made for")
    }
}

/// The operators of the shipped models, and no others: what is not named here is not linked.
fn options() -> ModelOptions {
    ModelOptions::with_ops(op_registry!(
        Add,
        AveragePool,
        Cast,
        Conv,
        ConvTranspose,
        DequantizeLinear,
        Flatten,
        Gemm,
        GlobalAveragePool,
        MatMul,
        Max,
        MaxPool,
        Min,
        PRelu,
        Pad,
        Relu,
        Reshape,
        Sigmoid,
        Softmax
    ))
}
