//! The words of VCL, each with its place.

use crate::source_files::{Sources, Span};

/// What kind of word it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    Identifier,
    Integer(u64),
    Real(f64),
    /// A string whose delimiters are this many bytes long.
    Text(u8),
    /// `:base64:`.
    Blob,
    /// `C{ … }C`.
    InlineC,
    /// An operator or bracket.
    Mark(Mark),
    End,
}

macro_rules! marks {
    ($($variant:ident $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mark { $($variant,)* }

        impl Mark {
            /// Longest first, so that the first that fits is right.
            pub const ALL: &[(Mark, &str)] = &[$((Mark::$variant, $text),)*];

            pub fn text(self) -> &'static str {
                match self { $(Mark::$variant => $text,)* }
            }
        }
    };
}

marks! {
    Increment "++", Decrement "--", AndAnd "&&", OrOr "||", LessEqual "<=", Equal "==", NotEqual "!=", GreaterEqual ">=",
    ShiftRight ">>", ShiftLeft "<<", PlusAssign "+=", MinusAssign "-=", TimesAssign "*=", DivideAssign "/=", NoMatch "!~",
    BraceOpen "{", BraceClose "}", ParenOpen "(", ParenClose ")", Star "*", Plus "+", Minus "-", Slash "/", Percent "%",
    Greater ">", Less "<", Assign "=", Semicolon ";", Not "!", Ampersand "&", Dot ".", Bar "|", Tilde "~", Comma ",",
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token {
    pub word: Word,
    pub span: Span,
}

impl Token {
    pub fn is(&self, mark: Mark) -> bool {
        self.word == Word::Mark(mark)
    }

    /// For messages: what stands there.
    pub fn show(&self, sources: &Sources) -> String {
        match self.word {
            Word::End => "the end of the file".to_owned(),
            Word::InlineC => "inline C".to_owned(),
            _ => {
                let text: String = sources.text(self.span).chars().filter(|c| !c.is_control()).collect();
                if text.chars().count() > 32 {
                    format!("`{}…`", text.chars().take(30).collect::<String>())
                } else {
                    format!("`{text}`")
                }
            }
        }
    }
}
