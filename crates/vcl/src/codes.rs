//! The stable codes of reports: what a program, a search engine or a suppression may rely on.
//!
//! A code is never given another meaning. docs/vcl-diagnostics.md lists them; a test holds it against this table.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program is not loaded.
    Error,
    /// The program is loaded, and somebody should look.
    Warning,
}

macro_rules! codes {
    ($($variant:ident $severity:ident $name:literal $meaning:literal,)*) => {
        /// What kind of mistake it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// One clause for the documentation.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    // The text.
    Syntax Error "syntax" "something else was expected here",
    MissingSemicolon Error "missing-semicolon" "a statement ends without `;`",
    UnbalancedBrace Error "unbalanced-brace" "a `{` is never closed, or a `}` closes nothing",
    Unterminated Error "unterminated" "a string, comment or inline C that does not end",
    BadLiteral Error "bad-literal" "a number, unit or BLOB that cannot be read",
    BadCharacter Error "bad-character" "a byte that no VCL word begins with",
    AclLongString Error "acl-long-string" "`acl x {\"…` opens a long string; a blank is missing after the brace",
    TooMuch Error "too-much" "a limit on nesting, size or number is passed",
    VersionMissing Error "version-missing" "the file does not begin with `vcl 4.0;` or `vcl 4.1;`",
    VersionUnknown Error "version-unknown" "a version of VCL that there is not",
    // Other languages.
    OldVcl Error "old-vcl" "the spelling of VCL 1, 2 or 3",
    FastlyVcl Error "fastly-vcl" "the spelling of Fastly's dialect",
    Template Error "template" "the file is a template that has not been filled in",
    InlineC Error "inline-c" "C code within VCL",
    // What `larder import` says.
    NotCarriedOver Error "not-carried-over" "something of an old file that has no translation",
    // Files and modules.
    IncludeNotFound Error "include-not-found" "an included file is not there",
    IncludeCircle Error "include-circle" "a file includes itself",
    UnknownVmod Error "unknown-vmod" "an imported module that larder does not have",
    UnknownVmodFunction Error "unknown-vmod-function" "a module has no such function, object or method",
    // Names.
    UnknownName Error "unknown-name" "a name that nothing defines",
    ReservedName Error "reserved-name" "a name that the language keeps for itself",
    BadName Error "bad-name" "a name with a character that names do not have",
    Duplicate Error "duplicate" "a second definition of a name or attribute",
    WrongKind Error "wrong-kind" "a name that means another kind of thing",
    // Types.
    TypeMismatch Error "type-mismatch" "a value of a type that does not fit here",
    BadOperator Error "bad-operator" "an operator that these types do not have",
    BadArguments Error "bad-arguments" "too many, too few or unknown arguments",
    RegexInvalid Error "regex-invalid" "a regular expression that does not compile",
    RegexNotLiteral Error "regex-not-literal" "a regular expression made at run time",
    // Where things are allowed.
    NotReadableHere Error "not-readable-here" "a variable that cannot be read in this subroutine",
    NotWritableHere Error "not-writable-here" "a variable that cannot be set in this subroutine",
    NotUnsettable Error "not-unsettable" "a variable that cannot be unset, or not in this subroutine",
    ReadOnly Error "read-only" "a variable that cannot be set anywhere",
    NotHere Error "not-here" "a statement or function that is not available in this subroutine",
    WrongReturn Error "wrong-return" "a return action that this subroutine does not have",
    Recursion Error "recursion" "subroutines that call each other in a circle",
    Impossible Error "impossible-subroutine" "no built-in subroutine could call this one",
    // Definitions.
    BadAclEntry Error "bad-acl-entry" "an ACL entry that is no address, name or mask",
    NoBackend Error "no-backend" "a program without a backend",
    BadBackend Error "bad-backend" "a backend that cannot be",
    BadProbe Error "bad-probe" "a probe that cannot be",
    UnknownAttribute Error "unknown-attribute" "an attribute that backends or probes do not have",
    // Warnings: the language.
    RenamedAction Warning "renamed-action" "a return action of an older Varnish",
    OldSpelling Warning "old-spelling" "something that newer versions of Varnish dropped",
    Unused Warning "unused" "a definition that nothing uses",
    HostBits Warning "host-bits" "an ACL entry with bits set behind its mask",
    Ignored Warning "ignored" "accepted, and without effect",
    CarriedOver Warning "carried-over" "something of an old file that was translated, and deserves a look",
    FailsHere Warning "fails-here" "a function that fails when it runs in this subroutine",
    // Warnings: likely mistakes.
    HeaderAgainstEmpty Warning "header-against-empty" "an absent header is not the empty string",
    AbsentBecomesEmpty Warning "absent-becomes-empty" "setting a header from an absent one makes an empty, true one",
    HashSkipsBuiltin Warning "hash-skips-builtin" "`return (hash)` without looking at method, Authorization and Cookie",
    TtlOfUncacheable Warning "ttl-of-uncacheable" "a ttl for what is not stored",
    HashWithoutUrl Warning "hash-without-url" "a key of one's own without the URL",
    CookieCached Warning "cookie-cached" "an answer with Set-Cookie is delivered from the cache",
    CookieTooLate Warning "cookie-too-late" "the Cookie is unset where no request with one arrives",
    Unreachable Warning "unreachable" "statements after a return",
    NeverMatches Warning "never-matches" "a condition that nothing fulfils, or an ACL entry that decides nothing",
    LooseExtension Warning "loose-extension" "`~ \"\\.jpg\"` matches anywhere in the URL",
    BadBan Warning "bad-ban" "a ban that could never be added, as far as it is known",
    BanOnRequest Warning "ban-on-request" "a ban that cannot be worked off in the background",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// docs/vcl-diagnostics.md, as it should be.
pub fn documentation() -> String {
    let mut page = String::from(
        "# What `larder check` says of VCL\n\n\
         Each report has a code that stays. An error keeps the file from being loaded; a warning does not.\n\
         This page is made from crates/vcl/src/codes.rs: `UPDATE_DOCS=1 cargo test --release -p vcl` writes it anew.\n\n\
         | code | severity | what |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let severity = match code.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        page.push_str(&format!("| `{code}` | {severity} | {} |\n", code.meaning()));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_is_made_from_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vcl-diagnostics.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, documentation()).expect("docs/ can be written");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), documentation(), "UPDATE_DOCS=1 writes it anew");
    }

    #[test]
    fn names_are_unique_and_in_one_form() {
        let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }
}
