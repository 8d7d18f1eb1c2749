//! What `larder import` makes of locations of nginx's that look for a file before they ask somebody else, and of names that no request has.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    /// What was said, and the text that came of it.
    fn imported(name: &str, servers: &str) -> (String, String) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let conf = folder.join("nginx.conf");
        std::fs::write(&conf, format!("events {{}}\nhttp {{\n{servers}\n}}\n")).unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
        let _ = std::fs::remove_dir_all(&folder);
        let [out, said] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (said, out)
    }

    /// nginx says 404 of what is no file, and asks the origin of files alone.
    #[test]
    fn an_origin_is_asked_for_no_more_than_nginx_asks_it_for() {
        for handler in ["proxy_pass http://127.0.0.1:1", "memcached_pass 127.0.0.1:1"] {
            let server =
                format!("server {{ listen 8080; root /srv; location / {{ try_files $uri =404; {handler}; }} }}");
            let (said, toml) = imported("tries", &server);
            assert!(toml.contains("closed = true") && !toml.contains("[origin."), "{handler}\n{toml}");
            assert!(said.contains("try_files $uri =404: closed"), "{said}");
        }
    }

    #[test]
    fn a_name_with_a_dot_behind_it_is_none_of_a_request() {
        let (said, toml) = imported(
            "dot",
            "server { listen 8080; root /srv/all; }\nserver { listen 8080; server_name a.test.; root /srv/none; }",
        );
        assert!(!toml.contains("/srv/none") && said.contains("nor end in a star or a dot"), "{toml}\n{said}");
    }
}
