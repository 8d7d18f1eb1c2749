//! Files that answer, and pages for errors.

use std::sync::Arc;

use super::*;
use crate::settings::{ErrorClass, ErrorPages, Listing, RootSettings};
use crate::static_files::finding::tests::TestFolder;
use crate::static_files::open_file_table::KnownFile;

/// A story whose files lie in this folder, with a page for what is not there.
pub(super) fn beneath(folder: &TestFolder) -> Story {
    Story::with(|settings| {
        settings.roots = vec![RootSettings { listing: Listing::Html, ..RootSettings::of(folder.path("")) }];
        settings.routes[0].target = RouteTarget::Root(0);
        let mut pages = ErrorPages::default();
        pages.add(ErrorClass::Status(404), "/absent.html".to_owned());
        settings.routes[0].error_pages = Some(Arc::new(pages));
    })
}

#[test]
fn a_file_is_served_with_its_type_and_asks_nobody() {
    let folder = TestFolder::new("story-file");
    folder.write("page.html", "hello");
    let reply = beneath(&folder).get("/page.html", &[]);
    assert_eq!((reply.status(), reply.body(), reply.verdict()), (200, "hello", (CacheVerdict::File, "")));
    assert_eq!((reply.field("content-type"), reply.asked().len()), ("text/html".to_owned(), 0));
}

#[test]
fn a_file_that_is_not_there_is_404_with_the_operators_page_or_our_own_sentence() {
    let folder = TestFolder::new("story-absent");
    let story = beneath(&folder);
    let ours = story.get("/none", &[]);
    assert_eq!((ours.status(), ours.verdict()), (404, (CacheVerdict::File, "file-absent")));
    assert!(ours.body().starts_with("404 Not Found"), "{}", ours.body());
    folder.write("absent.html", "nothing here");
    let theirs = story.get("/none", &[]);
    assert_eq!((theirs.status(), theirs.body()), (404, "nothing here"));
}

#[test]
fn a_directory_without_its_slash_is_301_to_it() {
    let folder = TestFolder::new("story-directory");
    folder.write("d/index.html", "index");
    let story = beneath(&folder);
    let reply = story.get("/d?a=b", &[]);
    assert_eq!((reply.status(), reply.field("location")), (301, "/d/?a=b".to_owned()));
    assert_eq!(story.get("/d/", &[]).body(), "index");
}

#[test]
fn an_index_that_a_listing_took_the_place_of_is_kept_no_longer() {
    let folder = TestFolder::new("story-listing");
    folder.write("d/index.html", "index");
    folder.write("d/film", "x");
    let story = beneath(&folder);
    assert_eq!(story.get("/d/", &[]).body(), "index");
    let is_kept = |story: &Story| {
        let (site, now_ms) = (story.core.site(), story.core.now().mono_ms);
        !matches!(site.files.table.get(0, b"/d/", now_ms), KnownFile::Nothing)
    };
    assert!(is_kept(&story));
    std::fs::remove_file(folder.path("d/index.html")).expect("it is there");
    story.pass_seconds(2);
    let listing = story.get("/d/", &[]);
    assert!(listing.status() == 200 && listing.body().contains("film"), "{}", listing.body());
    assert!(!is_kept(&story));
}
