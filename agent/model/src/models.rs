//! Lookup of models by name.

use std::sync::Arc;

use super::Model;

/// The prefix of a model name that refers to a class: `class:fast` denotes the model of class
/// `fast`.
pub const CLASS_PREFIX: &str = "class:";

/// The class that denotes the configured model, unless the settings map it to another model.
pub const BALANCED_CLASS: &str = "balanced";

/// The port through which models are opened by name.
pub trait Models: Send + Sync {
    /// Opens a model. `name` is a model name of the configured endpoint, or `class:` and the name
    /// of a class. The same name always returns the same model.
    ///
    /// # Errors
    /// If the class is unknown, or its endpoint cannot be used. The error is a message for the
    /// user.
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, String>;

    /// Returns the names of the classes, without the prefix.
    fn classes(&self) -> Vec<String>;
}

/// A set of models that returns one model, such as a recording, for every name.
#[derive(Clone)]
pub struct OneModel(Arc<dyn Model>);

impl OneModel {
    /// Creates a set that returns `model` for every name.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self(model)
    }
}

impl Models for OneModel {
    fn open(&self, _: &str) -> Result<Arc<dyn Model>, String> {
        Ok(Arc::clone(&self.0))
    }

    fn classes(&self) -> Vec<String> {
        vec![BALANCED_CLASS.to_owned()]
    }
}
