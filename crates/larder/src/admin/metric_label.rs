//! What is told of a label.

/// A label, and how many values it has at most.
pub struct LabelDefinition {
    pub name: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/metrics.md reads it"))]
    pub says: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/metrics.md reads it"))]
    pub bound: &'static str,
}
