//! A published nginx file made to run here: for larder as it is published, but for where files and origins are; for nginx
//! with a port of its own for each server, and without what needs certificates, logs and caches.

use std::path::Path;

/// No file includes others more deeply.
const INCLUDE_DEPTH_MAX: usize = 6;

/// Directives of nginx that name what is not here, by the beginnings of their names.
const NOT_HERE: &[&str] =
    &["listen", "ssl_", "http2", "access_log", "error_log", "log_format", "proxy_cache", "brotli", "more_"];

/// The words of a configuration: each piece ends with its `;`, `{` or `}`. Comments are left out.
fn pieces(text: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut quote, mut before) = (None, ' ');
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let is_word_start = before.is_whitespace() || matches!(before, ';' | '{' | '}');
        match c {
            '#' if quote.is_none() && is_word_start => {
                while chars.next().is_some_and(|c| c != '\n') {}
                before = '\n';
                piece.push('\n');
                continue;
            }
            '"' | '\'' if quote.is_none() && is_word_start => quote = Some(c),
            c if quote == Some(c) && before != '\\' => quote = None,
            _ => {}
        }
        piece.push(c);
        before = c;
        if quote.is_none() && matches!(c, ';' | '{' | '}') && !piece.ends_with("${") {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    pieces
}

fn name_of(piece: &str) -> &str {
    piece.split_whitespace().next().unwrap_or_default().trim_end_matches([';', '{', '}'])
}

/// The text with its includes in their places, as far as they are files beneath `folder`.
pub fn with_includes(text: &str, folder: &Path, depth: usize) -> String {
    let included = |piece: String| {
        let file = (name_of(&piece) == "include").then(|| piece.trim().trim_start_matches("include").trim());
        let file = file.map(|name| folder.join(name.trim_end_matches(';').trim())).filter(|path| path.is_file());
        match file.filter(|_| depth < INCLUDE_DEPTH_MAX).and_then(|path| std::fs::read_to_string(path).ok()) {
            Some(text) => with_includes(&text, folder, depth + 1),
            None => piece,
        }
    };
    pieces(text).into_iter().map(included).collect()
}

/// The root that a directive names, also by a variable.
fn root_of(piece: &str) -> Option<&str> {
    let words: Vec<&str> = piece.trim_end_matches(';').split_whitespace().collect();
    match words[..] {
        ["root", path] | ["set", "$public", path] => Some(path).filter(|path| path.starts_with('/')),
        _ => None,
    }
}

/// What larder imports: files lie beneath another root, and all origins are ours. Who speaks FastCGI is nobody.
pub fn with_places(text: &str, root: &Path, origin: u16) -> String {
    let published_root = pieces(text).iter().rev().find_map(|piece| root_of(piece).map(str::to_owned));
    let text = published_root.map_or(text.to_owned(), |from| text.replace(&from, &root.display().to_string()));
    let runs_programs = |name: &str| text.contains(&format!("fastcgi_pass {name};"));
    let mut upstream = None;
    let mut out = String::new();
    for piece in pieces(&text) {
        match name_of(&piece) {
            "upstream" => upstream = piece.split_whitespace().nth(1).map(|name| name.trim_end_matches('{').to_owned()),
            "server" if piece.ends_with(';') && upstream.is_some() => {
                let port = if upstream.as_deref().is_some_and(runs_programs) { 9 } else { origin };
                out.push_str(&format!(" server 127.0.0.1:{port};\n"));
                continue;
            }
            "" if piece.ends_with('}') => upstream = None,
            _ => {}
        }
        out.push_str(&piece);
    }
    out
}

/// What nginx runs of that: the server with the last of these ports is the last one of the file.
pub fn for_nginx(text: &str, ports: &mut dyn FnMut() -> Result<u16, String>) -> Result<(String, u16), String> {
    let (mut out, mut last) = (String::new(), 0);
    for piece in pieces(text) {
        let name = name_of(&piece);
        if piece.ends_with(';') && NOT_HERE.iter().any(|beginning| name.starts_with(beginning)) {
            continue;
        }
        if name == "proxy_pass" && piece.contains("https://") {
            // Nobody beyond this machine is asked.
            out.push_str(" proxy_pass http://127.0.0.1:9/;");
            continue;
        }
        out.push_str(&piece);
        if name == "server" && piece.ends_with('{') {
            last = ports()?;
            out.push_str(&format!(" listen 127.0.0.1:{last};"));
        }
    }
    Ok((out, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_file_is_made_to_run() {
        let text = "upstream app { server unix:/a.sock fail_timeout=0; } # not; {\nupstream php { server unix:/p; }\n\
            server { listen 443 ssl; ssl_protocols TLSv1.2; root /srv/app; location ~ \"a{2};\" { fastcgi_pass php; } }";
        let ours = with_places(text, Path::new("/tmp/x"), 81);
        assert!(ours.contains("server 127.0.0.1:81;") && ours.contains("server 127.0.0.1:9;"), "{ours}");
        assert!(ours.contains("root /tmp/x;") && ours.contains("listen 443 ssl;") && !ours.contains("not;"), "{ours}");
        let (theirs, last) = for_nginx(&ours, &mut || Ok(82)).expect("ports");
        assert!(theirs.contains("server { listen 127.0.0.1:82;") && !theirs.contains("ssl"), "{theirs}");
        assert!(theirs.contains("location ~ \"a{2};\" {") && last == 82, "{theirs}");
    }
}
