//! Accept-Encoding, read by larder and by a slow reader that first makes a list of all that is said: both choose the same.
//! Each line of the input is one field line.

use message::{FieldName, Fields};
use rules::content_coding::{names, preferred};

const OFFERS: &[&[&[u8]]] =
    &[&[b"br", b"zstd", b"gzip"], &[b"gzip", b"br"], &[b"zstd"], &[b"gzip"], &[b"dcz", b"dcb", b"zstd", b"gzip"], &[]];

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let lines: Vec<Vec<u8>> = data.split(|b| *b == b'\n').map(clean).collect();
    let mut fields = Fields::default();
    lines.iter().for_each(|line| fields.push(FieldName::AcceptEncoding, line));
    let said: Vec<Said> = lines.iter().flat_map(|line| members(line)).map(|member| Said::read(&member)).collect();
    for offered in OFFERS {
        let chosen = preferred(fields.view(), offered);
        assert_eq!(chosen, slowly_preferred(&said, offered), "{said:?} of {offered:?}");
        for coding in *offered {
            let is_named = names(fields.view().get_all(FieldName::AcceptEncoding), coding);
            let is_wanted = said.iter().any(|said| said.is_of(coding) && said.is_wanted);
            assert_eq!(is_named, is_wanted, "{said:?} of {}", coding.escape_ascii());
        }
    }
    check_order_of_lines(&lines);
}

/// A field value as the codec hands it on: no control bytes, no whitespace around it.
fn clean(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    line.retain(|b| *b == b'\t' || (*b >= b' ' && *b != 0x7f));
    line.trim_ascii().to_vec()
}

/// What one member says.
#[derive(Debug)]
struct Said {
    name: Vec<u8>,
    /// In thousandths; none where it cannot be read.
    weight: Option<u32>,
    /// By its first `q=`, wherever that stands, as a VCL's is read: none, or one that is more than nothing.
    is_wanted: bool,
}

impl Said {
    fn read(member: &[u8]) -> Said {
        let mut parts = member.split(|b| *b == b';').map(|part| part.trim_ascii().to_ascii_lowercase());
        let mut name = parts.next().unwrap_or_default();
        if name == b"x-gzip" {
            name = b"gzip".to_vec();
        }
        let weight = match parts.next() {
            None => Some(1_000),
            Some(parameter) => String::from_utf8(parameter).ok().and_then(|text| weight(text.strip_prefix("q=")?)),
        };
        let parameters = member.split(|b| *b == b';').skip(1).map(|part| part.trim_ascii());
        let number = parameters.filter(|part| part.starts_with(b"q=")).map(|part| part[2..].to_vec()).next();
        let is_wanted = number.is_none_or(|number| {
            let mut points = 0;
            let number = number.into_iter().take_while(|b| {
                points += usize::from(*b == b'.');
                b.is_ascii_digit() || *b == b'.' && points == 1
            });
            number.filter(|b| *b != b'0' && *b != b'.').count() > 0
        });
        Said { name, weight, is_wanted }
    }

    fn is_of(&self, coding: &[u8]) -> bool {
        self.name == coding
    }
}

/// RFC 9110 §12.4.2: 0 or 1, and up to three digits, which are zeros behind a 1.
fn weight(text: &str) -> Option<u32> {
    let is_short = text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let begins_well = text.starts_with("0.") || text.starts_with("1.") || text == "0" || text == "1";
    let number: f64 = if is_short && begins_well { text.parse().ok()? } else { return None };
    (number <= 1.0).then(|| (number * 1_000.0).round() as u32)
}

/// Commas part members, but not within quotes, in which a backslash takes its next byte with it.
fn members(line: &[u8]) -> Vec<Vec<u8>> {
    let mut members = vec![Vec::new()];
    let mut bytes = line.iter();
    let mut is_quoted = false;
    while let Some(&byte) = bytes.next() {
        let last = members.last_mut().expect("there is always one");
        match byte {
            b',' if !is_quoted => members.push(Vec::new()),
            b'\\' if is_quoted => {
                last.push(byte);
                last.extend(bytes.next());
            }
            _ => {
                is_quoted ^= byte == b'"';
                last.push(byte);
            }
        }
    }
    members.into_iter().map(|member| member.trim_ascii().to_vec()).filter(|member| !member.is_empty()).collect()
}

fn slowly_preferred(said: &[Said], offered: &[&[u8]]) -> Option<usize> {
    let star = said.iter().filter(|said| said.name == b"*").find_map(|said| said.weight);
    let weight_of = |coding: &[u8]| match said.iter().find(|said| said.is_of(coding)) {
        Some(said) => said.weight.unwrap_or(0),
        // A star is no wish for the thing as it is.
        None if coding == b"identity" => 0,
        None => star.unwrap_or(0),
    };
    let weights: Vec<u32> = offered.iter().map(|coding| weight_of(coding)).collect();
    let highest = weights.iter().copied().max().filter(|highest| *highest > 0)?;
    (highest >= weight_of(b"identity")).then(|| weights.iter().position(|weight| *weight == highest)).flatten()
}

/// Lines are one list, unless a quote is left open at the end of one.
fn check_order_of_lines(lines: &[Vec<u8>]) {
    if lines.iter().any(|line| line.contains(&b'"')) {
        return;
    }
    let (mut apart, mut joined) = (Fields::default(), Fields::default());
    lines.iter().for_each(|line| apart.push(FieldName::AcceptEncoding, line));
    joined.push(FieldName::AcceptEncoding, lines.join(&b", "[..]));
    for offered in OFFERS {
        assert_eq!(preferred(apart.view(), offered), preferred(joined.view(), offered));
    }
}
