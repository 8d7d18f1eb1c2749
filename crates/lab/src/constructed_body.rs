//! Bodies by construction: which bytes stand behind a path is a rule, so nobody has to store or to trust them.
//!
//! The fake origin sends them, and whoever reads them can tell each wrong byte and each that is at the wrong place. Lines of 64
//! bytes of printable ASCII, so that a body can be looked at: noise, which compresses as little as noise does; or text with
//! markup, which compresses as pages do. A page with parts is made of lines and of includes (ESI), all of one length.

use std::fmt::Write;

use crate::limits::PARTS_OF_A_PAGE_MAX;

/// Of one line, its line feed included.
const LINE_BYTES: u64 = 64;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Which bytes a body has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyRule {
    Noise {
        seed: u64,
    },
    Text {
        seed: u64,
    },
    /// Lines of noise, and behind each a part that is to be included.
    WithParts {
        seed: u64,
        part_bytes: u64,
        /// May the parts not be stored, and take their time?
        missing: bool,
    },
}

/// How long a part takes that must be fetched each time.
const MISSING_PART_QUERY: &str = "?c=0&t=50";

/// The rule of a path: `/t500.html` is text, `/e20x500.html` a page with twenty parts of 500 bytes, `/w20x500.html` one whose parts
/// may not be stored and take 50 ms each; everything else is noise.
pub fn body_rule(path: &str) -> BodyRule {
    let seed = body_seed(path);
    let is_text = path.strip_prefix("/t").and_then(|rest| rest.strip_suffix(".html"));
    match parts_of(path) {
        Some(Parts { part_bytes, missing, .. }) => BodyRule::WithParts { seed, part_bytes, missing },
        None if is_text.is_some_and(|size| size.parse::<u64>().is_ok()) => BodyRule::Text { seed },
        None => BodyRule::Noise { seed },
    }
}

/// What the path of a page with parts says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) count: u64,
    pub(crate) part_bytes: u64,
    pub(crate) missing: bool,
}

pub(crate) fn parts_of(path: &str) -> Option<Parts> {
    let (missing, rest) = match path.strip_prefix("/e") {
        Some(rest) => (false, rest),
        None => (true, path.strip_prefix("/w")?),
    };
    let (count, part_bytes) = rest.strip_suffix(".html")?.split_once('x')?;
    let (count, part_bytes) = (count.parse().ok()?, part_bytes.parse().ok()?);
    (count <= PARTS_OF_A_PAGE_MAX).then_some(Parts { count, part_bytes, missing })
}

impl Parts {
    pub(crate) fn path(&self) -> String {
        let letter = if self.missing { 'w' } else { 'e' };
        format!("/{letter}{}x{}.html", self.count, self.part_bytes)
    }

    /// Of the page as the origin has it.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.count * (LINE_BYTES + include(0, self.part_bytes, self.missing).len() as u64)
    }

    /// The page when its parts stand in it.
    pub(crate) fn put_together(&self) -> Vec<u8> {
        let mut page = Vec::new();
        for number in 0..self.count {
            page.extend_from_slice(&line_of_page(body_seed(&self.path()), number));
            let path = part_path(number, self.part_bytes);
            append_constructed(&mut page, body_rule(&path), 0, self.part_bytes);
            page.push(b'\n');
        }
        page
    }
}

fn part_path(number: u64, part_bytes: u64) -> String {
    // Four digits, so that all includes are of one length.
    format!("/part/{number:04}/f{part_bytes}.html")
}

fn include(number: u64, part_bytes: u64, missing: bool) -> String {
    let query = if missing { MISSING_PART_QUERY } else { "" };
    format!("<esi:include src=\"{}{query}\"/>\n", part_path(number, part_bytes))
}

/// Appends the bytes `from..to` of a body.
pub fn append_constructed(out: &mut Vec<u8>, rule: BodyRule, from: u64, to: u64) {
    let unit_bytes = match rule {
        BodyRule::Noise { .. } | BodyRule::Text { .. } => LINE_BYTES,
        BodyRule::WithParts { part_bytes, missing, .. } => LINE_BYTES + include(0, part_bytes, missing).len() as u64,
    };
    let mut at = from;
    while at < to {
        let (number, column) = (at / unit_bytes, (at % unit_bytes) as usize);
        let take = (unit_bytes as usize - column).min((to - at) as usize);
        match rule {
            BodyRule::Noise { seed } => out.extend_from_slice(&noise_line(seed, number)[column..column + take]),
            BodyRule::Text { seed } => out.extend_from_slice(&text_line(seed, number)[column..column + take]),
            BodyRule::WithParts { seed, part_bytes, missing } => {
                let include = include(number, part_bytes, missing);
                let unit = [&line_of_page(seed, number)[..], include.as_bytes()].concat();
                out.extend_from_slice(&unit[column..column + take]);
            }
        }
        at += take as u64;
    }
}

impl BodyRule {
    /// What tells it from others of its kind.
    pub fn seed(self) -> u64 {
        match self {
            BodyRule::Noise { seed } | BodyRule::Text { seed } | BodyRule::WithParts { seed, .. } => seed,
        }
    }
}

/// The seed of a path: FNV-1a, which everybody can compute in three lines.
pub(crate) fn body_seed(path: &str) -> u64 {
    path.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

fn dice_of_line(seed: u64, line: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed ^ line.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn noise_line(seed: u64, line: u64) -> [u8; LINE_BYTES as usize] {
    let mut dice = dice_of_line(seed, line);
    let mut text = [b'\n'; LINE_BYTES as usize];
    for letters in text[..LINE_BYTES as usize - 1].chunks_mut(10) {
        let mut bits = dice.u64(..);
        for letter in letters {
            *letter = LETTERS[(bits & 63) as usize];
            bits >>= 6;
        }
    }
    text
}

/// Of a page with parts, which begins as markup does: some look at nothing else.
fn line_of_page(seed: u64, line: u64) -> [u8; LINE_BYTES as usize] {
    let mut text = noise_line(seed, line);
    text[..3].copy_from_slice(b"<p>");
    text
}

/// What lines of text begin with, as pages have it.
const TAGS: [&str; 8] = ["<p>", "<li>", "<div class=\"", "<a href=\"/", "<td>", "<span id=\"", "<h2>", "  "];

/// Words by dice, the first ones more often; each line stands for itself, so that it can be made alone.
fn text_line(seed: u64, line: u64) -> [u8; LINE_BYTES as usize] {
    let mut dice = dice_of_line(seed, line);
    let mut text = String::with_capacity(LINE_BYTES as usize * 2);
    text.push_str(TAGS[dice.usize(..TAGS.len())]);
    while text.len() < LINE_BYTES as usize {
        // Of 600 made-up words, by a law like that of words in texts.
        let rank = (600.0_f64.powf(dice.f64()) - 1.0) as u64;
        push_word(&mut text, rank);
        text.push(' ');
    }
    let mut bytes = [b'\n'; LINE_BYTES as usize];
    bytes[..LINE_BYTES as usize - 1].copy_from_slice(&text.as_bytes()[..LINE_BYTES as usize - 1]);
    bytes
}

/// Frequent words are short.
fn push_word(text: &mut String, rank: u64) {
    const SYLLABLES: [&str; 16] =
        ["an", "be", "con", "de", "er", "for", "ing", "la", "men", "ness", "or", "pre", "re", "sta", "ti", "ver"];
    let mut left = rank + 1;
    while left > 0 {
        let _ = write!(text, "{}", SYLLABLES[(left % 16) as usize]);
        left /= 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(path: &str, from: u64, to: u64) -> Vec<u8> {
        let mut out = Vec::new();
        append_constructed(&mut out, body_rule(path), from, to);
        out
    }

    #[test]
    fn any_part_is_the_same_as_in_the_whole() {
        for path in ["/a", "/t1000.html", "/e20x500.html", "/w20x500.html"] {
            let whole = part(path, 0, 1_000);
            for (from, to) in [(0, 0), (0, 1), (63, 65), (64, 128), (100, 999), (999, 1_000)] {
                assert_eq!(part(path, from, to), whole[from as usize..to as usize], "{path}: {from}..{to}");
            }
            assert!(whole.iter().all(|b| b.is_ascii_graphic() || b" \n".contains(b)));
            assert_ne!(part("/b", 0, 1_000), whole);
            assert_ne!(whole[..64], whole[64..128]);
        }
    }

    /// As pages do, with gzip at its usual level: three to eight times.
    #[test]
    fn text_compresses_and_noise_does_not() {
        let gzip = |path: &str| {
            let body = part(path, 0, 75_356);
            body.len() as f64 / crate::coded_body::tests::encode(crate::ContentCoding::Gzip, &body, 6).len() as f64
        };
        let (text, noise) = (gzip("/t75356.html"), gzip("/f75356.html"));
        assert!((3.0..8.0).contains(&text) && noise < 1.5, "{text} {noise}");
    }

    #[test]
    fn a_page_with_parts_says_what_it_includes() {
        let parts = parts_of("/e3x100.html").unwrap();
        assert_eq!((parts.path().as_str(), parts_of("/e3.html")), ("/e3x100.html", None));
        let page = String::from_utf8(part("/e3x100.html", 0, parts.page_bytes())).unwrap();
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!((lines.len(), lines[5]), (6, "<esi:include src=\"/part/0002/f100.html\"/>"));
        let whole = parts.put_together();
        assert_eq!(whole.len(), 3 * (64 + 100 + 1));
        assert_eq!(whole[165 + 64..165 + 164], part("/part/0001/f100.html", 0, 100));
        let slow = part("/w3x100.html", 0, 200);
        assert!(String::from_utf8(slow).unwrap().contains("f100.html?c=0&t=50\"/>\n"));
    }
}
