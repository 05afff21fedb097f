use super::*;

fn raster(model: Model, samples: &[u8]) -> Raster {
    Raster { width: (samples.len() / model.channels()) as u32, height: 1, model, samples: samples.to_vec() }
}

fn developed(model: Model, profile: Option<&[u8]>, samples: &[u8]) -> Vec<u8> {
    Colours::of(model, profile).develop(raster(model, samples)).samples
}

#[test]
fn grey_becomes_colour() {
    assert_eq!(developed(Model::Grey, None, &[7, 9]), [7, 7, 7, 9, 9, 9]);
    assert_eq!(developed(Model::GreyAlpha, None, &[7, 100]), [7, 7, 7, 100]);
}
