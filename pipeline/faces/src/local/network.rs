//! A model loaded into the runtime.

use rten::{ModelOptions, NodeId, op_registry};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::models::Model;
use super::thread_pools::PooledThread;

/// A model that failed to load.
#[derive(Debug, thiserror::Error)]
#[error("failed to load the model {model}: {reason}")]
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
    /// Loads a built-in model and looks up its outputs.
    pub fn load(model: &Model, outputs: [&str; N]) -> Result<Self, LoadError> {
        let error = |reason: String| LoadError { model: model.name, reason };
        let loaded = options().load_static_slice(model.bytes).map_err(|e| error(e.to_string()))?;
        let input = *loaded.input_ids().first().ok_or_else(|| error("no input".to_owned()))?;
        let found = outputs.map(|name| loaded.find_node(name));
        if let Some(missing) = found.iter().position(Option::is_none) {
            return Err(error(format!("no output {}", outputs[missing])));
        }
        // All outputs were found, so the fallback is never used.
        Ok(Self { model: loaded, input, outputs: found.map(|id| id.unwrap_or(input)) })
    }

    /// Runs the model. Panics if the input does not have the shape of the model.
    pub fn run(&self, input: NdTensor<f32, 4>, thread: &PooledThread<'_>) -> [Vec<f32>; N] {
        self.model
            .run_n(vec![(self.input, input.into())], self.outputs, Some(thread.options()))
            .map(|outputs| outputs.map(|output| output.into_tensor::<f32>().expect("f32 outputs").to_vec()))
            .expect("a built-in model runs on its input shape")
    }
}

/// The operators that the built-in models use; others are not linked.
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
        Mul,
        PRelu,
        Pad,
        Relu,
        Reshape,
        Sigmoid,
        Softmax,
        Sub
    ))
}
