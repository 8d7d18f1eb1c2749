//! What `larder import` makes of Apache's configurations, beside the real Apache: the same files and origins behind both, and the same
//! requests to both, each in several spellings. Nothing is shown that Apache refuses, and what it answers is answered, or refused with a
//! word about it.

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::apache_beside::{self, FILES, host};
    use crate::imported_beside::{Asked, Beside, Wanted};

    /// `secret`, as `htpasswd -B -C 5` makes it.
    const USERS: &str = "ann:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
    const ANN: [&str; 2] = ["-H", "Authorization: Basic YW5uOnNlY3JldA=="];

    const MODULES: [&str; 24] = [
        "mpm_event",
        "authz_core",
        "authz_host",
        "authz_user",
        "authn_core",
        "authn_file",
        "auth_basic",
        "access_compat",
        "alias",
        "dir",
        "mime",
        "headers",
        "rewrite",
        "proxy",
        "proxy_http",
        "proxy_balancer",
        "lbmethod_byrequests",
        "slotmem_shm",
        "status",
        "setenvif",
        "env",
        "userdir",
        "negotiation",
        "autoindex",
    ];

    const SITE: [(&str, &str); 12] = [
        ("site/index.html", "the start"),
        ("site/a.txt", "a text"),
        ("site/a.bak", "an old text"),
        ("site/a.php", "<?php a source"),
        ("site/a.php.bak", "<?php an old source"),
        ("site/.htpasswd", "ann:x"),
        ("site/.git/config", "a repository"),
        ("site/private/x.txt", "private"),
        ("site/private/index.html", "privately"),
        ("site/pub/x.txt", "public"),
        ("other/app/x.txt", "another"),
        ("other/y.txt", "outside"),
    ];

    /// Apache with these hosts, and larder with what the import makes of them.
    fn beside(name: &str, hosts: &str) -> Beside {
        apache_beside::start(&format!("apache-{name}"), (&MODULES, hosts), &SITE, |beside| {
            std::os::unix::fs::symlink("site", beside.folder.join("link")).unwrap();
            beside.file("users", USERS);
        })
    }

    #[test]
    fn proxies_are_asked_for_the_same() {
        let beside = beside(
            "proxies",
            &host(
                "ProxyPass /none !\nProxyPass /app http://O-app/app\nProxyPass /api/ http://O-api/v1/\nProxyPass /bare http://O-bare\n\
                 ProxyPass /kept unix:HERE/none.sock|http://localhost/\nProxyPassReverse /app http://O-app/app\nProxyPass / http://O-all/ retry=0\n\
                 RequestHeader unset X-T-User\nRequestHeader set X-T-Role guest\nHeader unset X-R-Origin\n\
                 <Location /app/admin>\nRequire ip 10.0.0.0/8\n</Location>\n<Location /app/here>\nRequire local\n</Location>\n\
                 <Location /api/in>\nAuthType Basic\nAuthName ours\nAuthUserFile HERE/users\nRequire valid-user\n</Location>\n\
                 <Location /app/but>\n<RequireAll>\nRequire all granted\nRequire not ip 127.0.0.1\n</RequireAll>\n</Location>\n\
                 <LocationMatch \"\\.secret$\">\nRequire all denied\n</LocationMatch>\n<Location /own>\nProxyPass http://O-own/own\n</Location>",
            ),
        );
        for path in [
            "/",
            "/x?y=1",
            "/app",
            "/app/x",
            "/appx",
            "/api/x",
            "/api/",
            "/bare/x",
            "/bare",
            "/app/here/x",
            "/api",
            "/own/x",
        ] {
            beside.check("A1", path, &["-H", "X-T-User: admin", "-H", "X-T-Role: root"], Wanted::Same);
        }
        for path in ["/app/admin", "/app/admin/x", "/app/but", "/x.secret", "/app/x.secret", "/api/in/x"] {
            beside.check_refused("A1", path, &[]);
            beside.check("A1", path, &["-X", "POST"], Wanted::Same);
        }
        beside.check("A1", "/none", &[], Wanted::Same);
        let asked = Asked { at: "A1", path: "/api/in/x".to_owned(), options: ANN.to_vec() };
        let [theirs, ours] = beside.ask(&asked);
        assert!(theirs.status == 200 && ours.status == 200, "{theirs:?} {ours:?}\n{}", beside.toml);
        assert!(
            beside.toml.contains("cache = false") && beside.toml.contains("heuristic_percent = 0"),
            "{}",
            beside.toml
        );
    }

    /// Apache hands on what `upgrade=` names, and asks for a page in place of all else.
    #[test]
    fn the_named_protocol_is_handed_on_and_no_other() {
        let beside = beside(
            "upgrades",
            &host(
                "ProxyPass /socket/ http://O-socket/ upgrade=websocket\nProxyPass /any/ http://O-any/ upgrade=ANY\n\
                 ProxyPass /none/ http://O-none/ upgrade=NONE\nProxyPass / http://O-all/",
            ),
        );
        for (path, protocol, is_refused) in [
            ("/socket/", "websocket", false),
            ("/socket/", "WebSocket", false),
            ("/socket/", "other/1", true),
            ("/socket/", "h2c", false),
            ("/any/", "other/1", false),
            ("/none/", "websocket", true),
            ("/", "websocket", true),
            ("/", "other/1", true),
            ("/", "h2c", false),
        ] {
            let upgrade = format!("Upgrade: {protocol}");
            let options = ["-H", "Connection: Upgrade", "-H", &upgrade];
            match is_refused {
                false => beside.check_as_it_is("A1", path, &options, Wanted::Same),
                true => {
                    let [theirs, ours] =
                        beside.ask(&Asked { at: "A1", path: path.to_owned(), options: options.to_vec() });
                    let context = format!("{path} {protocol}\n{theirs:?}\n{ours:?}\n{}", beside.toml);
                    assert!(theirs.status == 200 && !theirs.body.contains("upgrade to"), "{context}");
                    assert_eq!(ours.status, 403, "{context}");
                }
            }
        }
    }

    #[test]
    fn files_are_shown_where_all_are_let_in() {
        let beside = beside(
            "files",
            &host(
                "DocumentRoot HERE/site\nAlias /app HERE/other/app\nAlias /elsewhere HERE/other\nScriptAlias /cgi-bin/ HERE/site/\n\
                 <Directory HERE/site>\nRequire all granted\n</Directory>\n<Directory HERE/other/app>\nRequire all granted\n</Directory>\n\
                 <Directory HERE/site/private/>\nRequire ip 10.0.0.1\n</Directory>\n<FilesMatch \"\\.bak$\">\nRequire all denied\n</FilesMatch>\n\
                 Redirect permanent /old https://new.test/old\nRedirect gone /gone\nRedirectMatch 403 secret\nErrorDocument 404 /a.txt",
            ),
        );
        for path in ["/", "/a.txt", "/pub/x.txt", "/app/x.txt", "/old/x", "/none"] {
            beside.check("A1", path, &[], Wanted::Same);
        }
        for path in
            ["/private/x.txt", "/private/", "/a.bak", "/a.php.bak", "/elsewhere/y.txt", "/secret/x", "/pub/secret"]
        {
            beside.check_refused("A1", path, &[]);
            beside.check("A1", path, &["-X", "POST"], Wanted::Same);
        }
        // A source is shown by Apache where nobody runs it, and a name with a dot.
        for path in ["/a.php", "/cgi-bin/a.txt", "/.htpasswd"] {
            let [_, ours] = beside.ask(&Asked { at: "A1", path: path.to_owned(), options: Vec::new() });
            assert_eq!(ours.status, 403, "{path}\n{}", beside.toml);
        }
        let [_, ours] = beside.ask(&Asked { at: "A1", path: "/.git/config".to_owned(), options: Vec::new() });
        assert_eq!(ours.status, 404, "{}", beside.toml);
    }

    #[test]
    fn a_host_with_a_word_that_is_not_understood_is_closed() {
        for (at, word) in [
            "RewriteEngine On\nRewriteRule ^/private - [F]",
            "UserDir site",
            "MergeSlashes Off",
            "<If \"%{REQUEST_URI} =~ /private/\">\nRequire all denied\n</If>",
            "SetHandler server-status",
            "Header edit X-A b c",
            "ProxyPassMatch ^/x(.*) http://127.0.0.1:9$1",
            "<IfDefine NOT_HERE>\nHeader unset X-A\n</IfDefine>",
            "<Proxy *>\nRequire ip 10.0.0.1\n</Proxy>",
            "<Location /a%20b>\nRequire all denied\n</Location>",
            "AccessFileName .other",
        ]
        .into_iter()
        .enumerate()
        {
            let beside = beside(&format!("word-{at}"), &host(&format!("{FILES}{word}")));
            let [_, ours] = beside.ask(&Asked { at: "A1", path: "/a.txt".to_owned(), options: Vec::new() });
            assert_eq!(ours.status, 403, "{word}\n{}", beside.toml);
            assert!(!beside.left().is_empty(), "{word}: closed without a word");
        }
    }

    #[test]
    fn a_section_with_a_word_that_is_not_understood_is_closed() {
        for (at, word) in [
            "Order deny,allow\nDeny from all",
            "<Limit GET>\nRequire all denied\n</Limit>",
            "<LimitExcept POST>\nRequire all denied\n</LimitExcept>",
            "Require env X",
            "Require method POST",
            "<RequireAny>\nRequire ip 10.0.0.1\n</RequireAny>",
            "Require user ben",
            "RewriteEngine On\nRewriteRule .* - [F]",
            "SetHandler server-status",
            "<If true>\nRequire all denied\n</If>",
            "AuthType Basic\nAuthName x\nAuthUserFile HERE/none-here\nRequire valid-user",
            "Satisfy any\nRequire ip 10.0.0.1",
        ]
        .into_iter()
        .enumerate()
        {
            for kind in ["Location /pub", "Directory HERE/site/pub"] {
                let text = format!("{FILES}<{kind}>\n{word}\n</{}>", kind.split(' ').next().unwrap());
                let beside = beside(&format!("section-{at}-{}", kind.len()), &host(&text));
                beside.check("A1", "/a.txt", &[], Wanted::Same);
                let [_, ours] = beside.ask(&Asked { at: "A1", path: "/pub/x.txt".to_owned(), options: Vec::new() });
                assert_eq!(ours.status, 403, "{word}\n{}", beside.toml);
                assert!(!beside.left().is_empty(), "{word}: closed without a word");
            }
        }
    }

    #[test]
    fn the_last_section_that_says_who_may_come_counts() {
        let beside = beside(
            "order",
            &host(
                "DocumentRoot HERE/site\n<Location /private>\nRequire all granted\n</Location>\n<Directory HERE/site/private>\nRequire all denied\n\
                 </Directory>\n<Directory HERE/site>\nRequire all granted\n</Directory>\n<Location />\nRequire all granted\n</Location>\n\
                 <Location /pub>\nRequire all denied\n</Location>\n<Location /pub/x.txt>\nRequire all granted\n</Location>\n\
                 <Location /private/index.html>\nRequire all denied\n</Location>",
            ),
        );
        for path in ["/a.txt", "/private/x.txt", "/pub/x.txt"] {
            beside.check("A1", path, &[], Wanted::Same);
        }
        // An index is guarded by its own path, too.
        for path in ["/pub", "/pub/", "/pub/y", "/private/index.html", "/private/"] {
            beside.check_refused("A1", path, &[]);
        }
    }

    /// What an expression takes out of answers is not shown, and no link is followed where Apache follows none.
    #[test]
    fn what_is_hidden_by_other_words_is_closed() {
        let quiet = "ProxyPass / http://O-all/\n<LocationMatch ^/quiet>\nHeader unset X-R-Origin\n</LocationMatch>";
        let quiet = beside("quiet", &host(quiet));
        quiet.check("A1", "/x", &[], Wanted::Same);
        quiet.check("A1", "/quiet", &[], Wanted::Closed);
        let linked = "DocumentRoot HERE/link\n<Directory />\nOptions None\n</Directory>\n\
                      <Directory HERE/link>\nOptions FollowSymLinks\nRequire all granted\n</Directory>";
        beside("linked", &host(linked)).check_refused("A1", "/a.txt", &[]);
        let nested = "DocumentRoot HERE/site\n<Directory HERE//site/>\nRequire all granted\n<Files *.txt>\nRequire all denied\n\
                      </Files>\n</Directory>";
        beside("nested", &host(nested)).check_refused("A1", "/a.txt", &[]);
    }

    /// What Apache would read in the folders themselves.
    #[test]
    fn files_that_guard_folders_close_them() {
        // Unless it is told not to, Apache looks for them.
        for (at, word) in ["AllowOverride All", "AllowOverride FileInfo", ""].into_iter().enumerate() {
            let text =
                format!("DocumentRoot HERE/site\n<Directory HERE/site>\n{word}\nRequire all granted\n</Directory>");
            let (beside, conf) = Beside::new(&format!("apache-folders-{at}"), &format!("Listen A1\n{}", host(&text)));
            for (name, text) in SITE {
                beside.file(name, text);
            }
            let conf = beside.file("httpd.conf", &conf);
            let imported = || {
                let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
                String::from_utf8_lossy(&done.stdout).into_owned()
            };
            assert!(imported().contains("root = "), "{}", imported());
            beside.file("site/private/.htaccess", "Require all denied\n");
            assert!(!imported().contains("root = "), "{}", imported());
            std::fs::remove_dir_all(beside.folder.join("site")).unwrap();
            assert!(!imported().contains("root = "), "{}", imported());
        }
    }

    #[test]
    fn the_first_host_that_has_a_name_answers() {
        let site = |names: &str, origin: &str| {
            format!(
                "<VirtualHost *:*>\n{names}\nProxyPass / http://O-{origin}/\nProxyPreserveHost On\n</VirtualHost>\n"
            )
        };
        let hosts = [
            site("ServerName a.test", "first"),
            site("ServerName b.test\nServerAlias *.b.test", "second"),
            site("ServerName x.b.test\nServerAlias c.test", "third"),
            "<VirtualHost *:*>\nServerName d.test\nUserDir site\n</VirtualHost>\n".to_owned(),
        ];
        let beside = beside("hosts", &hosts.concat());
        for host in ["a.test", "b.test", "x.b.test", "x.y.b.test", "c.test", "else.test", "B.TEST", "b.test:80"] {
            beside.check("A1", "/x", &["-H", &format!("Host: {host}")], Wanted::Same);
        }
        let [_, ours] = beside.ask(&Asked { at: "A1", path: "/".to_owned(), options: vec!["-H", "Host: d.test"] });
        assert_eq!(ours.status, 403, "{}", beside.toml);
    }

    /// A host that larder cannot tell from others closes those behind it.
    #[test]
    fn names_that_cannot_be_told_close() {
        let hosts = "<VirtualHost *:*>\nServerName a.test\nServerAlias b.*\nProxyPass / http://O-first/\n</VirtualHost>\n\
                     <VirtualHost *:*>\nServerName b.test\nProxyPass / http://O-second/\n</VirtualHost>";
        let beside = beside("names", hosts);
        for host in ["a.test", "b.test", "else.test"] {
            let asked = format!("Host: {host}");
            let [_, ours] = beside.ask(&Asked { at: "A1", path: "/".to_owned(), options: vec!["-H", &asked] });
            assert_eq!(ours.status, 403, "{host}\n{}", beside.toml);
        }
    }

    /// A host that names the port comes before one that names none.
    #[test]
    fn hosts_with_and_without_a_port_are_closed() {
        let (beside, _) = Beside::new("apache-ports", "");
        let site = |at: &str| {
            format!("<VirtualHost {at}>\nServerName a.test\nProxyPass / http://127.0.0.1:1/\n</VirtualHost>\n")
        };
        for (second, expect) in
            [("*:8080", true), ("_default_:8080", true), ("*", false), ("10.0.0.1:8080", false), ("b.test:8080", false)]
        {
            let conf = beside.file("ports.conf", &format!("Listen 8080\n{}{}", site("*:8080"), site(second)));
            let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            assert_eq!(text.contains("origin = "), expect, "{second}: {text}");
        }
    }

    /// Words whose nearest reading shows what Apache guards.
    #[test]
    fn what_another_reading_would_open_is_closed() {
        let (beside, _) = Beside::new("apache-readings", "");
        SITE.iter().for_each(|(name, text)| drop(beside.file(name, text)));
        beside.file("conf.d/x/guard.conf", "<Location /sub>\nRequire all denied\n</Location>\n");
        let here = beside.folder.display().to_string();
        let files =
            "DocumentRoot HERE/site\n<Directory HERE/site>\nAllowOverride None\nRequire all granted\n</Directory>\n";
        let guard = "<Location /sub>\nRequire all denied\n</Location>\n";
        let listed = files.replace("AllowOverride None", "AllowOverrideList Require\nAllowOverride None");
        // Each has nothing that is shown, or closes what lies beneath /sub.
        for (before, within) in [
            ("Listen localhost:8080", files.to_owned()),
            ("Listen 127.0.0.1:8080 h2c", files.to_owned()),
            ("<IfDefine X>\nListen 127.0.0.1:8080\n</IfDefine>", files.to_owned()),
            ("Listen 8080", format!("{files}IncludeOptional {here}/conf.d/*")),
            ("Listen 8080", listed),
            ("Listen 8080\nAccessFileName .HTACCESS", files.to_owned()),
            (
                "Listen 8080\nLoadModule mpm_event_module modules/mod_mpm_event.so",
                format!("{files}<IfModule !mod_mpm_event.c>\n{guard}</IfModule>"),
            ),
            (
                "Listen 8080\nLoadModule ldap_module modules/mod_ldap.so",
                format!("{files}<IfModule !mod_ldap.c>\n{guard}</IfModule>"),
            ),
            (
                "Listen 8080\nDefine A ${B}\nDefine B sub",
                format!("{files}{guard}<Location /${{A}}>\nRequire all granted\n</Location>"),
            ),
            (
                "Listen 8080\nDefine XX",
                format!("{files}{guard}<Location /sub${{XX}}>\nRequire all granted\n</Location>"),
            ),
            ("Listen 8080", format!("ServerAlias c.test:80\n{files}")),
            ("Listen 8080", format!("ServerAlias c.test.\n{files}")),
            ("Listen 8080", format!("AddType httpd/send-as-is .as\n{files}")),
        ] {
            let text = format!("{before}\n<VirtualHost *:8080>\nServerName a.test\n{within}\n</VirtualHost>\n")
                .replace("HERE", &here);
            let conf = beside.file("readings.conf", &text);
            let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
            let made = String::from_utf8_lossy(&done.stdout).into_owned();
            let is_closed = |route: &str| {
                route.contains("/sub") && route.contains("closed = true") || route.contains("\\.(?:as)(?:[./]|$)")
            };
            assert!(!made.contains("root = ") || made.split("[[route]]").any(is_closed), "{text}\n{made}");
        }
        // A program of one folder runs nothing in others.
        let php = "<Directory HERE/site/private>\n<FilesMatch \"\\.php$\">\nSetHandler \"proxy:unix:/run/none.sock|fcgi://localhost\"\n</FilesMatch>\n</Directory>\n";
        let text = format!("Listen 8080\n<VirtualHost *:8080>\nServerName a.test\n{files}{php}</VirtualHost>\n")
            .replace("HERE", &here);
        let conf = beside.file("php.conf", &text);
        let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
        let made = String::from_utf8_lossy(&done.stdout).into_owned();
        let all = made.split("[[route]]").find(|route| route.contains("path = \"/\"\n"));
        assert!(all.is_some_and(|route| route.contains("root = ") && !route.contains("origin = ")), "{made}");
    }

    /// Nobody listens where the file says nothing of it: larder would at an address of its own.
    #[test]
    fn without_a_listener_nothing_is_written() {
        let (beside, _) = Beside::new("apache-nobody", "");
        for (at, text) in
            ["DocumentRoot /srv/www", "Listen 8080\n<VirtualHost *:9>\nProxyPass / http://127.0.0.1:1/\n</VirtualHost>"]
                .into_iter()
                .enumerate()
        {
            let conf = beside.file(&format!("{at}.conf"), text);
            let toml = beside.folder.join(format!("{at}.toml"));
            let done = Command::new(env!("CARGO_BIN_EXE_larder"))
                .args(["import", "-o"])
                .arg(&toml)
                .arg(&conf)
                .output()
                .unwrap();
            assert!(!done.status.success());
            let text = std::fs::read_to_string(&toml).unwrap_or_default();
            assert!(text.is_empty() || !text.contains("origin = ") && text.contains("[[listen]]"), "{text}");
        }
    }
}
