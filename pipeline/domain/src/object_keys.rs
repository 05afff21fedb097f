//! Keys of the objects in the bucket. All of them are built and parsed here.
//!
//! | key | object |
//! |---|---|
//! | `originals/{image}.{jpg,jpeg,png,webp,gif}` | a photo as it was uploaded |
//! | `processed/{image}_{large,medium}.webp` | a variant of a photo |
//! | `persons/{person}.jpg` | the crop of a person |
//! | `merged/{person}.jpg` | the crop of a person who was merged into another, kept for an unmerge |
//! | `profiles/{email}/...`, `profile-pictures/{email}/...` | a user's profile picture |

use crate::{Email, ImageId, InvalidId, PersonId};

/// The folder of originals.
pub const ORIGINALS: &str = "originals/";
/// The folder of variants.
pub const VARIANTS: &str = "processed/";
/// The folder of crops.
pub const CROPS: &str = "persons/";
/// The folder of crops of merged persons.
pub const MERGED_CROPS: &str = "merged/";
/// The folders of profile pictures.
pub const PROFILES: [&str; 2] = ["profiles/", "profile-pictures/"];

/// The file extensions that an original may have, in any case.
pub const IMAGE_EXTENSIONS: [&str; 5] = ["jpg", "jpeg", "png", "webp", "gif"];
/// The names of the variants.
pub const VARIANT_NAMES: [&str; 2] = ["large", "medium"];

/// Returns the key of a photo's original.
pub fn original(image: &ImageId, extension: &str) -> String {
    format!("{ORIGINALS}{image}.{extension}")
}

/// Returns the key of a variant, which is one of [`VARIANT_NAMES`].
pub fn variant(image: &ImageId, name: &str) -> String {
    format!("{VARIANTS}{image}_{name}.webp")
}

/// Returns the keys of all variants of a photo.
pub fn variants(image: &ImageId) -> [String; 2] {
    VARIANT_NAMES.map(|name| variant(image, name))
}

/// Returns the key of a person's crop, where the platform's API looks for it.
pub fn crop(person: PersonId) -> String {
    format!("{CROPS}{person}.jpg")
}

/// Returns the key that a person's crop has while they are merged into another.
pub fn merged_crop(person: PersonId) -> String {
    format!("{MERGED_CROPS}{person}.jpg")
}

/// Returns whether the key is in the folder of originals.
pub fn is_original(key: &str) -> bool {
    key.starts_with(ORIGINALS)
}

/// Returns whether the key is in a folder of profile pictures.
pub fn is_profile(key: &str) -> bool {
    within_profiles(key).is_some()
}

/// Returns whether the key ends as that of an original does.
pub fn has_image_extension(key: &str) -> bool {
    let extension = key.rsplit_once('.').map_or("", |(_, extension)| extension);
    IMAGE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Returns the photo whose original has this key. The extension is not checked.
pub fn image_of_original(key: &str) -> Result<ImageId, KeyError> {
    let name = key.strip_prefix(ORIGINALS).ok_or(KeyError::NotAnOriginal)?;
    if name.contains('/') {
        return Err(KeyError::Nested);
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    Ok(stem.parse()?)
}

/// Returns the user whose profile picture has this key.
pub fn user_of_profile(key: &str) -> Result<Email, KeyError> {
    let name = within_profiles(key).ok_or(KeyError::NotAProfile)?;
    let (email, _) = name.split_once('/').ok_or(KeyError::WithoutUser)?;
    Ok(email.parse()?)
}

/// Returns whether this is the key of a variant of this photo, of any name.
pub fn is_variant_of(key: &str, image: &ImageId) -> bool {
    let rest = key.strip_prefix(VARIANTS).and_then(|name| name.strip_prefix(image.as_str()));
    rest.is_some_and(|rest| !rest.contains('/'))
}

/// Returns whether the key is in a folder of objects that belong to persons or users, not to a photo.
pub fn belongs_to_person(key: &str) -> bool {
    [CROPS, MERGED_CROPS].iter().chain(&PROFILES).any(|folder| key.starts_with(folder))
}

/// Returns whether the key is in a folder of originals or variants.
pub fn belongs_to_photo(key: &str) -> bool {
    [ORIGINALS, VARIANTS].iter().any(|folder| key.starts_with(folder))
}

/// Errors returned when parsing a key. In the messages "it" is the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not in the folder of originals.
    #[error("it is not under {ORIGINALS}")]
    NotAnOriginal,
    /// In a folder within that of originals.
    #[error("it is in a subfolder")]
    Nested,
    /// Not in a folder of profile pictures.
    #[error("it is not the key of a profile picture")]
    NotAProfile,
    /// Not in the folder of a user.
    #[error("it is not in a user's folder")]
    WithoutUser,
    /// Not named after a photo or a user.
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
}

fn within_profiles(key: &str) -> Option<&str> {
    PROFILES.iter().find_map(|folder| key.strip_prefix(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";

    #[test]
    fn built_keys_parse_back() -> Result<(), KeyError> {
        let image: ImageId = IMAGE.parse()?;
        assert_eq!(image_of_original(&original(&image, "JPG"))?, image);
        assert!(variants(&image).iter().all(|key| is_variant_of(key, &image)));
        assert_eq!(user_of_profile("profile-pictures/a@b.org/1/x.jpg")?.as_str(), "a@b.org");
        Ok(())
    }

    #[test]
    fn keys_of_other_folders_are_refused() {
        assert_eq!(image_of_original("processed/x.jpg"), Err(KeyError::NotAnOriginal));
        assert_eq!(image_of_original(&format!("originals/a/{IMAGE}.jpg")), Err(KeyError::Nested));
        assert_eq!(user_of_profile("persons/a@b.org/x.jpg"), Err(KeyError::NotAProfile));
        assert_eq!(user_of_profile("profiles/x.jpg"), Err(KeyError::WithoutUser));
        assert!(matches!(image_of_original("originals/person1.jpg"), Err(KeyError::InvalidId(_))));
    }

    #[test]
    fn a_key_belongs_to_a_person_or_to_a_photo() {
        for key in ["persons/person1.jpg", "merged/person1.jpg", "profiles/a@b.org/x", "profile-pictures/a@b.org/x"] {
            assert!(belongs_to_person(key) && !belongs_to_photo(key), "{key}");
        }
        for key in ["originals/x.jpg", "processed/x_large.webp"] {
            assert!(belongs_to_photo(key) && !belongs_to_person(key), "{key}");
        }
        assert!(!belongs_to_photo("thumbnails/x.jpg") && !belongs_to_person("thumbnails/x.jpg"));
    }
}
