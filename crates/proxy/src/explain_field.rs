//! The field by which an operator asks, along with a request, why it is answered as it is (`[admin] explain_header`). Who brings it with the
//! token of `[admin]` is told so in a field of the answer (`explained_opening.rs`); who brings it with anything else is told nothing.

use std::fmt;

use message::{Fields, FieldsView};

use crate::secret_comparison::is_same_secret;

/// Its name, and the token that it is to hold.
#[derive(Clone, PartialEq, Eq)]
pub struct ExplainField {
    pub name: Box<str>,
    pub token: Box<str>,
}

impl fmt::Debug for ExplainField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExplainField").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A request that brought it.
pub(crate) struct AskedWhy {
    /// Its other fields.
    pub(crate) others: Fields,
    /// It brought the token.
    pub(crate) is_operator: bool,
}

impl ExplainField {
    pub(crate) fn asked(&self, fields: FieldsView<'_>) -> Option<AskedWhy> {
        let name = self.name.as_bytes();
        let mut given = fields.get_all_named(name);
        let first = given.next()?;
        let is_operator = given.next().is_none() && is_same_secret(first, self.token.as_bytes());
        let mut others = Fields::default();
        let kept = fields.iter().filter(|field| !field.name_text.eq_ignore_ascii_case(name));
        kept.for_each(|field| others.push_field(&field));
        Some(AskedWhy { others, is_operator })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_right_token_asks_and_every_field_of_the_name_goes() {
        let field = ExplainField { name: "X-Why".into(), token: "0123456789abcdef".into() };
        let of = |lines: &[(&str, &str)]| {
            let mut fields = Fields::default();
            lines.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
            field.asked(fields.view()).map(|asked| (asked.is_operator, asked.others.view().count()))
        };
        assert_eq!(of(&[("a", "b")]), None);
        assert_eq!(of(&[("a", "b"), ("x-why", "0123456789abcdef")]), Some((true, 1)));
        assert_eq!(of(&[("X-WHY", "0123456789abcdeF")]), Some((false, 0)));
        assert_eq!(of(&[("X-Why", "")]), Some((false, 0)));
        let right = ("x-why", "0123456789abcdef");
        assert_eq!(of(&[right, right, ("a", "b")]), Some((false, 1)));
        assert!(!format!("{field:?}").contains("0123"));
    }
}
