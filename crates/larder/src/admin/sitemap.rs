//! The URLs that a sitemap lists (sitemaps.org), or the sitemaps that an index of them does. It is looked through for `<loc>` and nothing
//! else: what is no sitemap has none.

/// What it says.
#[derive(Debug, PartialEq, Eq)]
pub struct Sitemap {
    pub urls: Vec<String>,
    /// They are sitemaps themselves.
    pub is_index: bool,
}

/// `None` where there is not one URL.
pub fn read(text: &str) -> Option<Sitemap> {
    let mut urls = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("<loc>") {
        let Some((url, after)) = after.split_once("</loc>") else { break };
        urls.push(plain(url.trim()));
        rest = after;
    }
    (!urls.is_empty()).then(|| Sitemap { urls, is_index: text.contains("<sitemapindex") })
}

/// With XML's own five names for letters read, and marked text laid bare.
fn plain(url: &str) -> String {
    let url = url.strip_prefix("<![CDATA[").and_then(|url| url.strip_suffix("]]>")).unwrap_or(url);
    let read = url.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    read.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_their_letters() {
        let text = "<?xml version=\"1.0\"?><urlset><url><loc>http://a.test/</loc></url>\n<url><loc>\n http://a.test/?x=1&amp;y=2 \
                    </loc><lastmod>2026-01-01</lastmod></url><url><loc><![CDATA[http://a.test/c]]></loc></url></urlset>";
        let urls = ["http://a.test/", "http://a.test/?x=1&y=2", "http://a.test/c"].map(str::to_owned);
        assert_eq!(read(text), Some(Sitemap { urls: urls.into(), is_index: false }));
        let index = "<sitemapindex><sitemap><loc>http://a.test/1.xml</loc></sitemap></sitemapindex>";
        assert!(read(index).is_some_and(|index| index.is_index));
        assert_eq!((read("<html></html>"), read("<loc>http://a.test/"), read("")), (None, None, None));
    }
}
