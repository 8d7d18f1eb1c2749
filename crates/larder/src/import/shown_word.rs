//! One word of another program's configuration, with a mark in the place of passwords: users in URLs, values of queries, hashes, and what
//! stands behind a name that a secret has. It knows no directive.

/// In the place of a secret.
pub const MARK: &str = "…";
/// Words that are a secret's name where `=` and the secret stand behind them.
const SECRETS: [&str; 9] = ["login", "password", "passwd", "pass", "secret", "token", "key", "pin", "pin-value"];
/// A name with one of these in it (`db_password`, `AuthToken`) is a secret's, wherever it stands.
const SECRET_PARTS: [&str; 10] =
    ["password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key", "credential", "bearer"];
/// So do the names of keys end that are no files and no keys of a cache.
const KEY_ENDINGS: [&str; 6] = ["sign_key", "signing_key", "private_key", "access_key", "encryption_key", "jwt_key"];
const NO_SECRETS: [&str; 2] = ["server_tokens", "servertokens"];
/// Fields by whose values a server lets somebody in.
const CREDENTIAL_FIELDS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-auth"];
/// How hashes of passwords begin.
const HASHES: [&str; 10] = ["$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$apr1$", "$argon2", "{SHA"];
/// Words in front of a password in a field, and no word of a sentence behind them is so long.
const SCHEMES: [&str; 3] = ["Basic ", "Bearer ", "Token "];
const SENTENCE_WORD_MAX: usize = 7;
/// So many letters and digits in a row are nothing that is read, where so many of them are digits and so many are letters.
const RANDOM_MIN: usize = 16;
const RANDOM_DIGITS_MIN: usize = 3;

/// Fields whose values everybody may read. A nonce or a password stands in none of them.
const PUBLIC_FIELDS: [&str; 23] = [
    "host",
    "cache-control",
    "expires",
    "pragma",
    "vary",
    "server",
    "via",
    "connection",
    "upgrade",
    "content-type",
    "content-encoding",
    "accept-encoding",
    "strict-transport-security",
    "content-security-policy",
    "x-frame-options",
    "x-content-type-options",
    "x-xss-protection",
    "x-robots-tag",
    "x-forwarded-proto",
    "x-forwarded-host",
    "referrer-policy",
    "permissions-policy",
    "link",
];

/// Is it what a secret is called, and no path or variable of such a name?
pub fn is_secret_name(word: &str) -> bool {
    let word = word.trim_start_matches(['$', '+', '-', '?', '>']).trim_end_matches([':', '=']).to_lowercase();
    word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        && (SECRET_PARTS.iter().any(|part| word.contains(part)) || KEY_ENDINGS.iter().any(|end| word.ends_with(end)))
        && !NO_SECRETS.contains(&word.as_str())
}

/// Is it the name of a field whose value lets somebody in, with what some programs write in front of or behind a field's name?
pub fn is_credential_field(word: &str) -> bool {
    let name = word.trim_start_matches(['+', '-', '?', '>']).trim_end_matches([':', '=']).to_lowercase();
    CREDENTIAL_FIELDS.iter().any(|field| name == *field || *field == "x-auth" && name.starts_with(field))
}

pub fn is_public(field: &str) -> bool {
    let field = field.trim().trim_start_matches(['+', '-', '?', '>']).to_lowercase();
    PUBLIC_FIELDS.contains(&field.as_str()) || field.starts_with("access-control-")
}

/// Is it no more than that something is done or not?
pub fn is_switch(word: &str) -> bool {
    const SWITCHES: [&str; 9] = ["on", "off", "yes", "no", "true", "false", "none", "all", "default"];
    SWITCHES.contains(&word.to_lowercase().as_str())
}

/// Is there nothing in it but a variable of some program's?
pub fn is_variable(word: &str) -> bool {
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-:>".contains(&b));
    let inside = |open: &str, close: &str| word.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let name = inside("${", "}").or_else(|| inside("{", "}")).or_else(|| inside("%{", "}")).or(word.strip_prefix('$'));
    name.is_some_and(is_name)
}

/// Without the value of a secret's name, a hash of a password, what stands before the host of a URL, values in its query, or what a program
/// is told that is started.
pub fn shown(word: &str) -> String {
    if word.starts_with('|') && word.len() > 2 {
        return format!("|{MARK}");
    }
    let word = without_random(word);
    let word = without_users(&word);
    let word = without_query(&word);
    let word = without_named(&word);
    let cuts = [field_value(&word), scheme_value(&word), text_of_sample(&word), first_hash(&word)];
    match cuts.into_iter().flatten().min() {
        Some(at) => format!("{}{MARK}", &word[..at]),
        None => word,
    }
}

/// What nobody writes who wants to be read (`T0ab12…`, the key of a bot in a path): the segment that has it.
fn without_random(word: &str) -> String {
    let is_random = |run: &str| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        run.len() >= RANDOM_MIN && digits >= RANDOM_DIGITS_MIN && run.len() - digits >= RANDOM_DIGITS_MIN
    };
    let has_random = |text: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random);
    let segments = word.split('/').map(|segment| if has_random(segment) { MARK } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

fn first_hash(word: &str) -> Option<usize> {
    HASHES.iter().filter_map(|hash| word.find(hash)).min()
}

/// `NAME: VALUE` within a word, where the name is a secret's.
fn field_value(word: &str) -> Option<usize> {
    let colons = word.match_indices(':').map(|(at, _)| at);
    let is_its = |at: &usize| {
        let name = word[..*at].trim_end();
        let name = &name[name_start(name)..];
        // Behind a user's password stands no more than that.
        is_credential_field(name) || is_secret_name(name)
    };
    let at =
        colons.filter(is_its).find(|at| !is_variable(word[at + 1..].trim()) && !word[at + 1..].trim().is_empty())?;
    let blanks = word[at + 1..].len() - word[at + 1..].trim_start().len();
    Some(at + 1 + blanks)
}

/// Where the name at the end of a text begins. Behind a `\` stands the letter of an escape.
fn name_start(text: &str) -> usize {
    let is_other = |c: char| !c.is_ascii_alphanumeric() && !"_.-".contains(c);
    let at = text.rfind(is_other).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    if text[..at].ends_with('\\') && at < text.len() { at + 1 } else { at }
}

/// `Basic dXNlcjpwYXNz`.
fn scheme_value(word: &str) -> Option<usize> {
    let begins = SCHEMES.iter().filter_map(|scheme| word.find(scheme).map(|at| at + scheme.len()));
    let is_value = |at: &usize| {
        let value = word[*at..].split_whitespace().next().unwrap_or_default();
        value.len() > SENTENCE_WORD_MAX && !value.starts_with(['$', '{', '%'])
    };
    begins.filter(is_value).min()
}

/// HAProxy's texts and keys: `str(secret)`, `hmac(sha256,secret)`.
fn text_of_sample(word: &str) -> Option<usize> {
    const SAMPLES: [&str; 5] = ["str(", "hmac(", "jwt_verify(", "aes_gcm_", "secure_memcmp("];
    SAMPLES.iter().filter_map(|sample| word.find(sample).map(|at| at + sample.len())).min()
}

/// `https://ann:secret@a.test/` and `ann:secret@a.test` as `https://…@a.test/` and `…@a.test`.
fn without_users(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once("://") {
        out.extend([before, "://"]);
        // A password with a slash in it is one, too, where the text in front of the slash is no host with a port.
        let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
        let is_port =
            |port: &str| port.starts_with(['$', '{', '%']) || port.bytes().all(|b| b.is_ascii_digit() || b == b'*');
        let has_password =
            authority.rsplit_once(':').is_some_and(|(_, port)| !is_port(port) && !authority.ends_with(']'));
        let users = match authority.rfind('@') {
            Some(at) => Some(at),
            None => behind.find('@').filter(|_| has_password),
        };
        rest = match users {
            Some(at) => {
                out.push_str(MARK);
                &behind[at..]
            }
            None => behind,
        };
    }
    if out.is_empty()
        && let Some((user, host)) = rest.split_once('@')
        && let Some((name, password)) = user.split_once(':')
        && !name.is_empty()
        && name != "mailto"
        && !user.contains(['/', ' ', '(', '$', '{', '%'])
        && !password.is_empty()
    {
        return format!("{MARK}@{host}");
    }
    out + rest
}

/// Values behind a `?` that are no variables. In a URL without names all of it.
fn without_query(word: &str) -> String {
    let is_regex = |before: &str| before.contains(['^', '(', '[', '\\', '|']);
    let Some((before, query)) = word.split_once('?').filter(|(before, _)| !is_regex(before)) else {
        return word.to_owned();
    };
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.[]%".contains(&b));
    let has_named = query.split('&').any(|pair| pair.split_once('=').is_some_and(|(name, _)| is_name(name)));
    if !has_named {
        let is_bare = before.contains("://") && !query.is_empty() && is_name(query);
        return if is_bare { format!("{before}?{MARK}") } else { word.to_owned() };
    }
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() && !value.starts_with(['$', '{', '%']) => format!("{name}={MARK}"),
        _ => pair.to_owned(),
    });
    format!("{before}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// `NAME=VALUE`, where the name is a secret's: to the end of the word, or of the pair where others stand in front.
fn without_named(word: &str) -> String {
    let (mut out, mut from) = (String::new(), 0);
    while let Some(at) = word[from..].find('=').map(|at| from + at) {
        let start = from + name_start(&word[from..at]);
        let name = word[start..at].to_lowercase();
        let is_its = SECRETS.contains(&name.as_str()) || is_secret_name(&name) || is_credential_field(&name);
        out.push_str(&word[from..=at]);
        from = at + 1;
        let ends = if start == 0 { None } else { word[from..].find(['&', ';', ' ', '"', '\'', ')', ']', '}', ',']) };
        let value = &word[from..ends.map_or(word.len(), |end| from + end)];
        if is_its && !value.is_empty() && !is_variable(value) {
            out.push_str(MARK);
            from += value.len();
        }
    }
    out + &word[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_somebody_in_is_no_part_of_a_word_that_is_shown() {
        for (word, expect) in [
            ("http://ann:secret@app.test/path", "http://…@app.test/path"),
            ("unix:/run/a.sock|http://ann:secret@a/", "unix:/run/a.sock|http://…@a/"),
            ("http://a.test/,http://ann:secret@b.test", "http://a.test/,http://…@b.test"),
            ("http://ann:sec/ret@app.test/", "http://…@app.test/"),
            ("ann:secret@cache.test:3128", "…@cache.test:3128"),
            ("https://a.test/x?k=secret&b=$uri&c=", "https://a.test/x?k=…&b=$uri&c="),
            ("/index.php?q=$uri&$args", "/index.php?q=$uri&$args"),
            ("/a?api=secret", "/a?api=…"),
            ("https://a.test/?s3cret", "https://a.test/?…"),
            ("login=ann:secret", "login=…"),
            ("engine:pkcs11:object=a;type=private;pin-value=1234", "engine:pkcs11:object=a;type=private;pin-value=…"),
            ("password=a&b", "password=…"),
            ("[?&]token=secret&x=1", "[?&]token=…&x=1"),
            ("Authorization: Basic abc", "Authorization: …"),
            ("GET / HTTP/1.1\\r\\nAuthorization:abc", "GET / HTTP/1.1\\r\\nAuthorization:…"),
            ("X-Api-Key: secret", "X-Api-Key: …"),
            ("Authorization: $http_authorization", "Authorization: $http_authorization"),
            ("Bearer abcdefghij", "Bearer …"),
            ("Basic login", "Basic login"),
            ("str(secret),lower", "str(…"),
            ("ann:$2y$10$abc", "ann:…"),
            ("https://hooks.test/T00/XyZ0a1b2c3d4e5f6g7/x", "https://hooks.test/T00/…/x"),
            ("/bot123:Ab-zyx57W2v1u123ew11/send", "/…/send"),
            ("0f3a9b7c2d4e6f80", "…"),
            ("|/usr/bin/log -k secret", "|…"),
        ] {
            assert_eq!(shown(word), expect, "{word}");
        }
    }

    #[test]
    fn the_rest_of_words_is_shown() {
        for word in [
            "http://app.test:3000/a@b",
            "http://[::1]:80/a@b",
            "http://$host:$port/a@b",
            "https://$host$request_uri",
            "^/(?<name>a)=?$",
            "~^/a(b)?c=d$",
            "weight=3",
            "mailto:ann@a.test",
            "$cookie_token",
            "zone=one:10m",
            "[::1]:80",
            "a.test:8080",
            "/forgotten-password",
            "ECDHE-ECDSA-AES128-GCM-SHA256:!aNULL",
            "/etc/ssl/605f6609f106d1.17683543.list",
            "||",
        ] {
            assert_eq!(shown(word), word);
        }
    }
}
