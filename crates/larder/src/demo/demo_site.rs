//! The demo's site: a few pages about keeping food, their style sheet and picture. Plain text, nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

/// What the origin answers for one path.
pub struct Resource {
    pub path: &'static str,
    pub content_type: &'static str,
    /// `no-store` is what must never be kept.
    pub cache_control: &'static str,
    pub body: Body,
}

pub enum Body {
    Fixed(&'static str),
    Page {
        title: &'static str,
        text: &'static str,
    },
    /// Another one each time it is asked for.
    Counter(AtomicU64),
}

const HTML: &str = "text/html; charset=utf-8";
const PAGE_CACHE: &str = "public, max-age=60, stale-while-revalidate=30";
const ASSET_CACHE: &str = "public, max-age=3600";

/// Every resource; the first is the front page.
pub fn resources() -> Vec<Resource> {
    let page = |path, title, text| {
        let body = Body::Page { title, text };
        Resource { path, content_type: HTML, cache_control: PAGE_CACHE, body }
    };
    let asset = |path, content_type, text| {
        let body = Body::Fixed(text);
        Resource { path, content_type, cache_control: ASSET_CACHE, body }
    };
    let today = Resource {
        path: "/today",
        content_type: HTML,
        cache_control: "no-store",
        body: Body::Counter(AtomicU64::new(0)),
    };
    vec![
        page("/", "The larder", FRONT),
        page("/jars", "Jars", JARS),
        page("/smoke", "Smoke", SMOKE),
        page("/salt", "Salt", SALT),
        page("/cellar", "The cellar", CELLAR),
        asset("/style.css", "text/css; charset=utf-8", STYLE),
        asset("/shelf.svg", "image/svg+xml", SHELF),
        today,
    ]
}

impl Resource {
    pub fn is_stored(&self) -> bool {
        self.cache_control != "no-store"
    }

    pub fn render(&self) -> String {
        match &self.body {
            Body::Fixed(text) => (*text).to_owned(),
            Body::Page { title, text } => frame(title, text),
            Body::Counter(count) => {
                let n = count.fetch_add(1, Ordering::Relaxed) + 1;
                frame("Today", &format!("<p>This page is made anew for everybody: it is number {n}.</p>"))
            }
        }
    }
}

fn frame(title: &str, text: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <link rel=\"stylesheet\" href=\"/style.css\">\n<link rel=\"icon\" href=\"/shelf.svg\">\n</head>\n<body>\n\
         <nav><a href=\"/\">larder</a> <a href=\"/jars\">jars</a> <a href=\"/smoke\">smoke</a> \
         <a href=\"/salt\">salt</a> <a href=\"/cellar\">cellar</a> <a href=\"/today\">today</a></nav>\n\
         <main>\n<h1>{title}</h1>\n{text}\n</main>\n\
         <footer>Each page takes its server 30 milliseconds of thought. The larder thinks of it once.</footer>\n\
         </body>\n</html>\n"
    )
}

const FRONT: &str = r#"<img src="/shelf.svg" alt="A shelf with three jars" width="320" height="140">
<p>A larder is a cool room beside the kitchen. What is cooked every day is cooked in the kitchen; what is eaten every
day is taken from the larder. A cook who owns one does not cook less well. She is asked for the same soup forty times
and makes it once.</p>
<p>The art lies in three questions. What may be kept at all? For how long? And how do you notice that it has turned?
Our grandparents answered them with salt, smoke, sugar and cold, and wrote the date on the lid. The pages behind the
links above say a little about each.</p>
<p>One page of this site is different every time and must never be kept. You find it under <a
href="/today">today</a>.</p>"#;

const JARS: &str = r#"<p>A jar keeps what was boiled in it, as long as its lid holds. The rule is short: fill it hot,
close it at once, and do not open it to look. A jar that hisses is fine. A jar that does not has been open to the air
for a while, whatever its label says.</p>
<ul>
<li>Plums keep for two winters.</li>
<li>Beans keep for one, and are boiled again before they are eaten.</li>
<li>Strawberries keep their colour until Christmas and their taste until Easter.</li>
</ul>
<p>Write the day on the lid and not on the shelf, since jars are moved. A label that says only "jam" is a guess about
the future; a label that says "jam, plum, the ninth of September, until the spring after next" is a promise, and it
can be checked by somebody who was not there.</p>
<p>If you are sent a jar without a date, you may look at when the fruit was picked. What took ten weeks to ripen will
not spoil in one.</p>"#;

const SMOKE: &str = r#"<p>Smoke dries the outside first, and that is its whole secret: what cannot be entered cannot
be spoilt. Cold smoke takes days and asks for patience. Hot smoke takes an afternoon and asks for attention.</p>
<p>Beech is mild, oak is strong, and resinous wood is for people who do not like their guests. Keep the fire small
enough that you can hold your hand above the fish and count to eight.</p>
<p>A smokehouse serves the whole village from one fire. When four neighbours bring trout on the same morning, nobody
lights a second one. The first to come waits for the fire, the others wait with him, and all of them carry their fish
home at the same hour.</p>"#;

const SALT: &str = r#"<p>Salt is the oldest way, and the most exact. Weigh it: twenty grams for each kilogram of
cabbage, thirty for cucumbers, and for ham as much as it will take. Too little and it turns, too much and nobody eats
it.</p>
<p>The crock is looked at once a week. Most times there is nothing to do but to put the plate back and to say that it
is good for another week. That is not wasted work. Looking costs a minute; a new crock costs a summer.</p>
<p>And when it has turned, it has turned. Do not serve the top half. Do not mix it with the next one. There is no such
thing as a somewhat spoilt crock.</p>"#;

const CELLAR: &str = r#"<p>The cellar is where a larder ends: dark, even, and never large enough. Apples lie in one
row and do not touch. Potatoes do not like the apples' company. The wine likes nobody's.</p>
<p>When the shelves are full, something has to go, and the question is what. Not the oldest, for old cheese is why
people visit. Not the largest, for then there would be no ham. Take away what was put there once and never asked for
again. It is usually close to the door, where it was left on the way in.</p>
<p>A good cellar has a book. It says what came, when, and who took it. Nobody reads it until the day a jar is missing,
and on that day it is the only thing that anybody reads.</p>"#;

const STYLE: &str = "\
body { margin: 0; background: #f7f2e7; color: #33291c; font: 18px/1.6 Georgia, serif; }
nav { padding: 1rem 2rem; background: #6b4a2b; }
nav a { color: #f7f2e7; margin-right: 1.2rem; text-decoration: none; }
nav a:hover { text-decoration: underline; }
main { max-width: 38rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-weight: normal; border-bottom: 1px solid #c9b48f; }
img { float: right; margin: 0 0 1rem 1.5rem; max-width: 50%; height: auto; }
footer { max-width: 38rem; margin: 3rem auto; padding: 0 1.5rem; color: #8a7759; font-size: .85rem; }
";

const SHELF: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 140" role="img">
<rect x="10" y="116" width="300" height="12" rx="2" fill="#6b4a2b"/>
<g stroke="#33291c" stroke-width="2">
<rect x="40" y="46" width="60" height="70" rx="10" fill="#b5483f"/>
<rect x="46" y="32" width="48" height="14" rx="3" fill="#d9c9a3"/>
<rect x="130" y="56" width="60" height="60" rx="10" fill="#7c8f3c"/>
<rect x="136" y="42" width="48" height="14" rx="3" fill="#d9c9a3"/>
<rect x="220" y="36" width="60" height="80" rx="10" fill="#d39a2e"/>
<rect x="226" y="22" width="48" height="14" rx="3" fill="#d9c9a3"/>
</g>
<g fill="#f7f2e7">
<rect x="50" y="70" width="40" height="24"/><rect x="140" y="76" width="40" height="22"/><rect x="230" y="64" width="40" height="26"/>
</g>
</svg>
"##;
