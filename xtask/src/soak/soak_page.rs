//! The site of `cargo xtask soak`: which pages there are, what their paths say, and what the body of each version is. The origin answers by it and the judge compares by it; neither
//! knows the other.

use crate::crash_bodies::{body_of, is_text};
use crate::dice::Dice;

/// Pages that have versions and are purged. All others are asked for once.
pub const KEYS: usize = 240;
const FOLDER_KEYS: usize = 12;
const TAGS: usize = 20;
const KINDS: usize = 24;
const LARGE_BYTES: (usize, u64) = (300_000, 500_000);
pub const HOST: &str = "soak.test";

/// A page by its number; from [`KEYS`] on those that are asked for once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoakPage(pub usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Compressed by larder.
    Text,
    Binary,
    /// It includes two parts (ESI).
    Whole,
    Part,
    /// Kept in slices, and asked for in ranges.
    Large,
    /// Fresh for a second, and confirmed by 304.
    Brief,
    /// Asked for once.
    Once,
}

/// What a purge may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgedKeys {
    Page(usize),
    Tag(usize),
    Folder(usize),
    /// A ban of the field X-Kind.
    Kind(usize),
    All,
}

/// A page with the versions that an answer has, of itself and of what it includes.
pub type VersionsFound = Vec<(usize, u64)>;

impl SoakPage {
    /// `next` numbers those that are asked for once.
    pub fn drawn(dice: &mut Dice, next: impl FnOnce() -> usize) -> SoakPage {
        match dice.below(8) {
            0 => SoakPage(KEYS + next()),
            1..=4 => SoakPage(dice.often_small(KEYS as u64) as usize),
            _ => SoakPage(dice.below(KEYS as u64) as usize),
        }
    }

    /// One of this kind.
    pub fn of_kind(kind: PageKind, dice: &mut Dice) -> SoakPage {
        loop {
            let page = SoakPage(dice.below(KEYS as u64) as usize);
            if page.kind() == kind {
                return page;
            }
        }
    }

    pub fn kind(self) -> PageKind {
        use PageKind::{Binary, Brief, Large, Once, Part, Text, Whole};
        if self.0 >= KEYS { Once } else { [Text, Binary, Whole, Part, Large, Brief][self.0 % 6] }
    }

    pub fn path(self) -> String {
        format!("/k/{}/p{}", self.0 / FOLDER_KEYS, self.0)
    }

    pub fn of_path(path: &str) -> Option<SoakPage> {
        let page = SoakPage(path.rsplit_once("/p")?.1.parse().ok()?);
        (path == page.path()).then_some(page)
    }

    /// Of a whole page: what it includes.
    pub fn parts(self) -> [SoakPage; 2] {
        [SoakPage((self.0 + 1) % KEYS), SoakPage((self.0 + 61) % KEYS)]
    }

    /// What the origin sends for a version.
    pub fn body(self, version: u64) -> Vec<u8> {
        match self.kind() {
            PageKind::Whole => {
                let [first, second] = self.parts().map(SoakPage::path);
                let [begin, middle, end] = self.frame(version);
                format!("{begin}<esi:include src=\"{first}\"/>{middle}<esi:include src=\"{second}\"/>{end}")
                    .into_bytes()
            }
            PageKind::Part => {
                let words = body_of(self.0 * 2, version);
                [format!("<p>part {} version {version}.", self.0).as_bytes(), &words, b"</p>\n"].concat()
            }
            PageKind::Large => {
                let mut dice = Dice::of((self.0 as u64) << 32 | version);
                let length = LARGE_BYTES.0 + dice.below(LARGE_BYTES.1) as usize;
                (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).take(length).collect()
            }
            _ => body_of(self.0, version),
        }
    }

    /// What stands around the parts of a whole page.
    fn frame(self, version: u64) -> [String; 3] {
        let text = format!("page {} version {version}", self.0);
        [
            format!("<html><p>{text}</p>{}\n", "<i>soaked</i>".repeat(60)),
            format!("<hr>{text}<hr>"),
            format!("</html><!-- end of {text} -->"),
        ]
    }

    /// Status line and fields of a version, but those that frame.
    pub fn head(self, version: u64) -> String {
        let media = match self.kind() {
            PageKind::Whole | PageKind::Part => "text/html",
            PageKind::Text | PageKind::Once if is_text(self.0) => "text/html",
            _ => "application/octet-stream",
        };
        let life = if self.kind() == PageKind::Brief { "max-age=1, must-revalidate" } else { "max-age=100000" };
        let more = match self.kind() {
            PageKind::Whole => "Surrogate-Control: content=\"ESI/1.0\"\r\n",
            PageKind::Large => "Accept-Ranges: bytes\r\n",
            _ => "",
        };
        format!(
            "Content-Type: {media}\r\nCache-Control: {life}\r\nETag: {}\r\nX-Version: {version}\r\nCache-Tag: t{}\r\nX-Kind: {}\r\n{more}",
            self.entity_tag(version),
            self.0 % TAGS,
            self.0 % KINDS
        )
    }

    pub fn entity_tag(self, version: u64) -> String {
        format!("\"{}-{version}\"", self.0)
    }

    /// The versions in a body as a client should have it; what is wrong with it otherwise. `version` is the one that the answer's head says.
    pub fn versions_in(self, body: &[u8], version: u64) -> Result<VersionsFound, String> {
        if self.kind() != PageKind::Whole {
            let expected = self.body(version);
            return match body == expected {
                true => Ok(vec![(self.0, version)]),
                false => Err(format!("version {version} {}", difference(body, &expected))),
            };
        }
        let [begin, middle, end] = self.frame(version);
        let mut found = vec![(self.0, version)];
        let mut left = body.strip_prefix(begin.as_bytes()).ok_or("the page begins otherwise")?;
        for (part, behind) in self.parts().into_iter().zip([middle, end]) {
            let (version, length) = part.part_at(left)?;
            found.push((part.0, version));
            left = left[length..].strip_prefix(behind.as_bytes()).ok_or("the page goes on otherwise behind a part")?;
        }
        if left.is_empty() { Ok(found) } else { Err(format!("{} bytes behind the page's end", left.len())) }
    }

    /// Which version of this part a text begins with, and how long that is.
    fn part_at(self, text: &[u8]) -> Result<(u64, usize), String> {
        let named = format!("<p>part {} version ", self.0);
        let behind = text.strip_prefix(named.as_bytes()).ok_or_else(|| format!("part {} is not there", self.0))?;
        let digits = behind.split(|&byte| byte == b'.').next().unwrap_or_default();
        let version = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let version = version.ok_or_else(|| format!("part {} has no version", self.0))?;
        let expected = self.body(version);
        match text.starts_with(&expected) {
            true => Ok((version, expected.len())),
            false => Err(format!("part {} version {version} {}", self.0, difference(text, &expected))),
        }
    }

    /// This page, and what it includes.
    pub fn with_parts(self) -> Vec<usize> {
        match self.kind() {
            PageKind::Once => Vec::new(),
            PageKind::Whole => std::iter::once(self.0).chain(self.parts().map(|part| part.0)).collect(),
            _ => vec![self.0],
        }
    }
}

fn difference(found: &[u8], expected: &[u8]) -> String {
    let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    format!("has {} bytes of {}, and is another one from byte {same} on", found.len(), expected.len())
}

impl PurgedKeys {
    pub fn drawn(dice: &mut Dice) -> PurgedKeys {
        match dice.below(20) {
            0..=11 => PurgedKeys::Page(dice.below(KEYS as u64) as usize),
            12..=14 => PurgedKeys::Tag(dice.below(TAGS as u64) as usize),
            15..=16 => PurgedKeys::Folder(dice.below((KEYS / FOLDER_KEYS) as u64) as usize),
            _ => PurgedKeys::Kind(dice.below(KINDS as u64) as usize),
        }
    }

    pub fn keys(self) -> Vec<usize> {
        let is_meant = |key: &usize| match self {
            PurgedKeys::Page(meant) => *key == meant,
            PurgedKeys::Tag(tag) => key % TAGS == tag,
            PurgedKeys::Folder(folder) => key / FOLDER_KEYS == folder,
            PurgedKeys::Kind(kind) => key % KINDS == kind,
            PurgedKeys::All => true,
        };
        (0..KEYS).filter(is_meant).collect()
    }

    /// The body of an order to `POST /purge`.
    pub fn order(self) -> String {
        match self {
            // What is stored of both is kept apart.
            PurgedKeys::Page(key) => {
                let path = SoakPage(key).path();
                format!("{{\"urls\":[\"http://{HOST}{path}\",\"https://{HOST}{path}\"]}}")
            }
            PurgedKeys::Tag(tag) => format!("{{\"tags\":[\"t{tag}\"]}}"),
            PurgedKeys::Folder(folder) => format!("{{\"prefix\":\"{HOST}/k/{folder}/\"}}"),
            PurgedKeys::Kind(kind) => format!("{{\"ban\":\"obj.http.X-Kind == {kind}\"}}"),
            PurgedKeys::All => "{\"all\":true}".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_known_by_its_path_and_its_versions_by_their_bodies() {
        for key in 0..KEYS + 3 {
            let page = SoakPage(key);
            assert_eq!(SoakPage::of_path(&page.path()), Some(page));
            if page.kind() != PageKind::Whole {
                let mut body = page.body(3);
                assert_eq!(page.versions_in(&body, 3), Ok(vec![(key, 3)]));
                assert!(page.versions_in(&body, 4).is_err());
                body.pop();
                assert!(page.versions_in(&body, 3).is_err(), "{page:?}");
            }
        }
        assert_eq!(SoakPage::of_path("/k/1/p0"), None);
    }

    #[test]
    fn a_page_with_parts_says_the_version_of_each() {
        let page = SoakPage(2);
        let [first, second] = page.parts();
        assert_eq!((first.kind(), second.kind()), (PageKind::Part, PageKind::Part));
        let text = |versions: [u64; 3]| {
            let [begin, middle, end] = page.frame(versions[0]).map(String::into_bytes);
            [begin, first.body(versions[1]), middle, second.body(versions[2]), end].concat()
        };
        let found = page.versions_in(&text([4, 12, 1]), 4);
        assert_eq!(found, Ok(vec![(2, 4), (first.0, 12), (second.0, 1)]));
        assert!(page.versions_in(&text([5, 12, 1]), 4).is_err());
        let mut cut = text([4, 12, 1]);
        cut.truncate(cut.len() - 1);
        assert!(page.versions_in(&cut, 4).is_err());
    }

    fn check(purged: PurgedKeys, count: usize, order: &str) {
        assert_eq!(purged.keys().len(), count);
        assert_eq!(purged.order(), order);
        let order: serde_json::Value = serde_json::from_str(order).expect("it is JSON");
        assert!(order.is_object());
    }

    #[test]
    fn an_order_means_the_pages_that_are_raised() {
        check(PurgedKeys::Page(13), 1, r#"{"urls":["http://soak.test/k/1/p13","https://soak.test/k/1/p13"]}"#);
        check(PurgedKeys::Tag(7), 12, r#"{"tags":["t7"]}"#);
        check(PurgedKeys::Folder(2), 12, r#"{"prefix":"soak.test/k/2/"}"#);
        check(PurgedKeys::Kind(5), 10, r#"{"ban":"obj.http.X-Kind == 5"}"#);
        check(PurgedKeys::All, 240, r#"{"all":true}"#);
    }
}
