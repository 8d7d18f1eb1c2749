//! What an import of published nginx configurations says of itself: all that is answered otherwise is listed, and what can be said is
//! carried over. Each case was found in a configuration that somebody published.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::imported_nginx::tests::{check_server, folder, import, imported};

    fn of_servers(folder: &Path, servers: &[&str]) -> (String, String) {
        let conf = folder.join("nginx.conf");
        let _ = std::fs::remove_file(folder.join("out.toml"));
        std::fs::write(&conf, format!("http {{ {} }}", servers.join("\n"))).unwrap();
        let (_, said) = import(&conf, &folder.join("out.toml"));
        let text = std::fs::read_to_string(folder.join("out.toml")).unwrap_or_default();
        (said, text)
    }

    /// A server's own name in a redirect is the name that it has, whoever asks.
    #[test]
    fn a_redirect_to_the_name_of_a_server_says_that_name() {
        let folder = folder("own-name");
        for target in ["https://$server_name$request_uri", "https://a.test$request_uri"] {
            let inside = format!("listen 80; server_name a.test; location / {{ return 301 {target}; }}");
            let to = "redirect = { to = \"https://a.test$request_uri\", status = 301 }";
            check_server(&folder, &inside, (0, &[to], &["$host"]));
        }
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// As in Moodle's: a site in the clear at two ports, where one path is led away.
    #[test]
    fn what_is_led_away_for_one_path_closes_no_other() {
        let folder = folder("one-path");
        let rule = "if ($server_port != 443) { rewrite ^/login(/.*)?$ https://$server_name$uri last; }";
        let inside = format!("listen 80; listen 443; server_name a.test; {rule} location / {{ }}");
        let to = "redirect = { to = \"https://a.test$request_uri\", status = 302 }";
        check_server(&folder, &inside, (0, &[to, "root = "], &["closed = true"]));
        let said = check_server(
            &folder,
            "if ($host = b.test) { rewrite ^/x /y; } location / { }",
            (1, &["closed = true", "root = "], &[]),
        );
        assert!(said.contains("not carried over: rewrite"), "{said}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_listener_that_leads_all_says_whom_nginx_answers_otherwise() {
        let folder = folder("leads-all");
        let secure = "server { listen 443 ssl; server_name a.test; root site; }";
        let refusing = "server { listen 80; server_name a.test; if ($host !~ ^a) { return 444; } location / { return 301 https://$host$request_uri; } }";
        let (said, _) = of_servers(&folder, &[secure, refusing]);
        assert!(said.contains("not carried over: if") && said.contains("a listener leads all or none"), "{said}");
        // What a script is told is no place where anybody is led.
        let fixed = "server { listen 80; server_name a.test; location / { return 301 https://a.test$request_uri; } location /x { fastcgi_param HTTP_HOST $host; fastcgi_pass 127.0.0.1:1; } }";
        let (said, _) = of_servers(&folder, &[secure, fixed]);
        assert!(said.contains("not carried over: server: each name is led to its own https://"), "{said}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// nginx takes any word for a name, and a name twice.
    #[test]
    fn names_that_are_no_hosts_are_listed() {
        let folder = folder("no-hosts");
        let first = "server { listen 80 default_server; server_name c.test; root second; }";
        let second = "server { listen 80; server_name <dns> a.test a.test; server_name A.test b.test:80; root site; }";
        let (said, text) = of_servers(&folder, &[first, second]);
        assert!(said.contains("nor be anything but a name") && text.contains("host = [\"a.test\"]"), "{said}\n{text}");
        assert!(!text.contains("dns") && !text.contains(":80\"]"), "{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn what_no_request_comes_to_closes_nothing() {
        let folder = folder("no-slash");
        let said = check_server(
            &folder,
            "listen 80; location api/ { deny all; } location / { }",
            (0, &["root = "], &["closed = true"]),
        );
        assert!(said.contains("note: location api/: no request comes here"), "{said}");
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_root_that_names_no_folder_shows_nothing() {
        let folder = folder("no-folder");
        check_server(
            &folder,
            "listen 80; location /m/ { root { x y; } }",
            (1, &["path = \"/m/\"\nclosed = true"], &[]),
        );
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn numbers_are_shown_to_networks_alone() {
        let folder = folder("numbers");
        let inside = "listen 80; location = /n { stub_status; allow 127.0.0.1; allow office.example; deny all; }";
        check_server(&folder, inside, (1, &["allow_from = [\"127.0.0.1\"]"], &["office"]));
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// As in Harbor's portal: where the file of a `try_files` is absent, nginx goes on with its location's own.
    #[test]
    fn a_file_that_answers_and_is_absent_is_listed() {
        let folder = folder("absent");
        let inside = |file: &str| {
            format!(
                "listen 80; location /api {{ try_files $uri {file}; }} location / {{ try_files $uri $uri/ /a.html; }}"
            )
        };
        let (_, said, _) = imported(&folder, &inside("/none.html"));
        assert!(said.contains("not carried over: location /api: 404 where the file is absent"), "{said}");
        check_server(&folder, &inside("/a.txt"), (0, &["fallback = \"/a.txt\""], &[]));
        check_server(&folder, &inside("/a.html"), (0, &["fallback = \"/a.html\""], &[]));
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// nginx leads `/app%2Fin` to `/app/in/`, and asks nobody for it.
    #[test]
    fn the_path_of_a_folder_is_led_in_every_spelling_or_closed() {
        let folder = folder("folder-path");
        let inside = "listen 80; location /app { proxy_pass http://127.0.0.1:1; } location /app/in/ { proxy_pass http://127.0.0.1:1; }";
        let (_, said, text) = imported(&folder, inside);
        let route = text.split("[[route]]").find(|route| route.contains("'^/app'") && route.contains("origin"));
        let closes =
            |route: &str| route.lines().any(|line| line.starts_with("closed_paths") && line.contains("'^/app/in$'"));
        assert!(route.is_some_and(closes), "{said}\n{text}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
