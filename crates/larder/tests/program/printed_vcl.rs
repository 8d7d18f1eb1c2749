//! `larder config show --as-vcl`, by the real program: for each word of routes a larder.toml and the VCL that is printed of it are asked the same,
//! each before an origin of its own, and answer the same.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    use crate::configured_larder::ConfiguredLarder;

    const PATIENCE: Duration = Duration::from_secs(20);
    /// Beside words that have some VCL, these say a page's origin, by name.
    const ORIGINS: [&str; 2] = ["app", "next"];
    /// What is compared of heads; all else (Age, Via, Cache-Status) is larder's own, and another under a program.
    const FIELDS: [&str; 10] = [
        "location",
        "content-type",
        "x-made",
        "x-added",
        "x-powered-by",
        "x-frame-options",
        "access-control-allow-origin",
        "access-control-allow-methods",
        "access-control-allow-credentials",
        "access-control-expose-headers",
    ];

    /// A request: its first line but for the version, and its fields.
    type Asked = (&'static str, &'static [&'static str]);

    const PLAIN: &[&str] = &[];

    /// What a larder.toml says beside its origins, and what is asked of it.
    fn table() -> Vec<(&'static str, Vec<Asked>)> {
        let get = |path: &'static str| -> Asked { (path, PLAIN) };
        vec![
            (
                "[[route]]\norigin = \"app\"",
                vec![
                    get("GET /fresh"),
                    get("GET /fresh"),
                    get("GET /silent"),
                    get("GET /silent"),
                    ("GET /fresh", &["Cookie: a=1"]),
                    ("GET /login", &["Authorization: Basic x"]),
                    get("GET /login"),
                    ("POST /form", PLAIN),
                    ("HEAD /fresh", PLAIN),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\n[[route]]\npath = \"/a\"\norigin = \"next\"\n[[route]]\nhost = \"b.test\"\norigin = \"next\"\n[[route]]\npath_pattern = \"\\\\.png$\"\norigin = \"next\"",
                vec![
                    get("GET /"),
                    get("GET /a"),
                    get("GET /a/b?c"),
                    get("GET /ab"),
                    get("GET /x.png?q"),
                    get("GET /a.png/b"),
                    ("GET /", &["Host: B.test:80"]),
                    ("GET /", &["Host: c.b.test"]),
                ],
            ),
            ("[[route]]\npath = \"/only\"\norigin = \"app\"", vec![get("GET /only"), get("GET /other")]),
            (
                "[[route]]\norigin = \"app\"\n[[route]]\norigin = \"next\"\nmethod = \"POST\"\n[[route]]\norigin = \"next\"\nheader = { X-Beta = \"y*\" }",
                vec![
                    get("GET /fresh"),
                    ("POST /form", PLAIN),
                    ("GET /fresh", &["X-Beta: yes"]),
                    ("GET /fresh", &["X-Beta: no"]),
                    get("GET /fresh"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"",
                vec![
                    get("GET /silent"),
                    get("GET /silent"),
                    ("GET /silent", &["Cookie: a=1"]),
                    ("GET /silent", &["X-Api-Key: 1"]),
                    get("GET /private"),
                    get("GET /private"),
                    get("GET /absent"),
                    get("GET /absent"),
                    get("GET /cookie"),
                    get("GET /cookie"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = { 404 = \"1m\", default = \"5m\" }",
                vec![get("GET /absent"), get("GET /absent"), get("GET /silent"), get("GET /silent")],
            ),
            ("[[route]]\norigin = \"app\"\ncache = false", vec![get("GET /fresh"), get("GET /fresh")]),
            (
                "[[route]]\norigin = \"app\"\ncache = \"force\"\nttl = \"5m\"",
                vec![
                    get("GET /private"),
                    get("GET /private"),
                    get("GET /cookie"),
                    get("GET /cookie"),
                    get("GET /absent"),
                    get("GET /absent"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nignore_origin = [\"Set-Cookie\"]\nttl = \"5m\"",
                vec![get("GET /cookie"), get("GET /cookie"), get("GET /private"), get("GET /private")],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\ncookies = { bypass = [\"sid*\"], keep = [] }",
                vec![
                    ("GET /silent", &["Cookie: a=1; _ga=2"]),
                    ("GET /silent", &["Cookie: b=1"]),
                    ("GET /silent", &["Cookie: a=1; sid_x=2"]),
                    ("GET /silent", &["Cookie: xsid=2"]),
                    get("GET /silent"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\ncookies = { keep = [\"lang\"] }",
                vec![
                    ("GET /silent", &["Cookie: lang=de; a=1"]),
                    ("GET /silent", &["Cookie: lang=en"]),
                    ("GET /silent", &["Cookie: b=2; lang=de"]),
                    get("GET /silent"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\ncookies = { strip = [\"a*\", \"b\"] }",
                vec![
                    ("GET /silent", &["Cookie: ab=1; b=2"]),
                    get("GET /silent"),
                    ("GET /silent", &["Cookie: bb=2; a=1"]),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\nquery = { ignore = [\"x\", \"y*\"], sort = true }",
                vec![
                    get("GET /silent?b=2&x=1&a=1"),
                    get("GET /silent?a=1&b=2&yes"),
                    get("GET /silent?xx=1&a"),
                    get("GET /silent?x=1"),
                    get("GET /silent"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\nquery = { keep = [\"id\"] }",
                vec![
                    get("GET /silent?id=1&idx=2"),
                    get("GET /silent?a&id=1"),
                    get("GET /silent?a"),
                    get("GET /silent"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\nquery = \"ignore\"",
                vec![get("GET /silent?a"), get("GET /silent?b")],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\nvary_by = [\"header:Accept-Language\"]",
                vec![
                    ("GET /silent", &["Accept-Language: de"]),
                    ("GET /silent", &["Accept-Language: en"]),
                    ("GET /silent", &["Accept-Language: de"]),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nttl = \"5m\"\nvary_by = \"device\"",
                vec![
                    ("GET /silent", &["User-Agent: iPhone Mobile"]),
                    ("GET /silent", &["User-Agent: Android Mobile"]),
                    ("GET /silent", &["User-Agent: iPad"]),
                    ("GET /silent", &["User-Agent: Googlebot"]),
                    get("GET /silent"),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\nrequest_headers = { set = { X-Made = \"$host$uri$is_args$args\" }, add = { X-Also = \"b\" }, remove = [\"X-Gone\"] }",
                vec![("GET /silent?a=1", &["X-Gone: 1", "X-Made: 2", "X-Also: a"]), get("GET /silent")],
            ),
            (
                "[[route]]\norigin = \"app\"\nresponse_headers = { set = { X-Made = \"$request_uri\" }, add = { X-Added = \"1\" }, remove = [\"X-Powered-By\"], default = { Content-Type = \"a/b\" } }\n[[route]]\npath = \"/old\"\nredirect = \"/new\"\nresponse_headers = { set = { X-Made = \"r\" } }",
                vec![get("GET /fresh?a"), get("GET /fresh?a"), get("GET /old")],
            ),
            (
                "[[route]]\norigin = \"app\"\nresponse_headers = { set = { X-Made = \"x$and_args\" }, add = { X-Added = \"1\" }, default = { X-Frame-Options = \"DENY\" }, on_success = [\"X-Made\", \"X-Added\", \"X-Frame-Options\"] }",
                vec![
                    get("GET /fresh?a=b"),
                    get("GET /fresh"),
                    get("GET /fresh?"),
                    get("GET /absent?a"),
                    get("GET /absent?a"),
                ],
            ),
            ("[[route]]\norigin = \"app\"\nsecurity_headers = true", vec![get("GET /fresh"), get("GET /absent")]),
            (
                "[[route]]\norigin = \"app\"\ncors = { origins = [\"https://*.a.test\"], methods = [\"PUT\"], expose = [\"X-Made\"], credentials = true }",
                vec![
                    ("GET /fresh", &["Origin: https://x.a.test"]),
                    ("GET /fresh", &["Origin: https://evil.test"]),
                    ("GET /fresh", &["Origin: https://evil.test/.a.test"]),
                    get("GET /fresh"),
                    ("OPTIONS /fresh", &["Origin: https://x.a.test", "Access-Control-Request-Method: PUT"]),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\ncors = true",
                vec![
                    ("GET /fresh", &["Origin: https://x.a.test"]),
                    get("GET /fresh"),
                    ("OPTIONS /fresh", &["Origin: https://x.a.test", "Access-Control-Request-Method: PUT"]),
                ],
            ),
            (
                "[[route]]\norigin = \"app\"\npath = \"/api\"\nstrip_prefix = \"/api\"",
                vec![get("GET /api"), get("GET /api?q=1"), get("GET /api/fresh"), get("GET /api/fresh")],
            ),
            (
                "[[route]]\norigin = \"app\"\npath_pattern = \"^/v1/(.*)$\"\nrewrite = \"/new/$1\"",
                vec![get("GET /v1/a/b?c=d"), get("GET /v1/")],
            ),
            ("[[route]]\norigin = \"app\"\ntimeouts = { first_byte = \"300ms\" }", vec![get("GET /fresh")]),
            ("[[route]]\nredirect = \"https://www.a.test$request_uri\"", vec![get("GET /a?b=c"), ("POST /x", PLAIN)]),
            (
                "[[route]]\npath_pattern = \"^/old/(.*)$\"\nredirect = { to = \"/new/$1\", status = 302 }",
                vec![get("GET /old/a"), get("GET /old//evil.test")],
            ),
            (
                "[[route]]\nredirect = { to = \"https://$host/x\", status = 308 }",
                vec![("GET /a", &["Host: A.test:81"])],
            ),
            (
                "[[route]]\npath = \"/gone\"\nrespond = { status = 410, body = \"gone: $request_uri\\n\", type = \"text/x\" }\n[[route]]\nrespond = \"hello\"",
                vec![get("GET /gone?a"), get("GET /")],
            ),
            (
                "[[route]]\norigin = \"app\"\nmaintenance = { body = \"later\", retry_after = \"1m\" }",
                vec![get("GET /")],
            ),
            (
                "[[route]]\norigin = \"app\"\nmaintenance = { body = \"later\", allow = [\"127.0.0.0/8\"] }",
                vec![get("GET /fresh")],
            ),
            ("[[route]]\norigin = \"app\"\nallow = [\"127.0.0.0/8\"]", vec![get("GET /fresh")]),
            ("[[route]]\norigin = \"app\"\nallow = [\"10.0.0.0/8\"]", vec![get("GET /fresh")]),
            ("[[route]]\norigin = \"app\"\ndeny = [\"127.0.0.1\"]", vec![get("GET /fresh")]),
            (
                "[[route]]\norigin = \"app\"\n[[route]]\npath = \"/shut\"\nclosed = true",
                vec![get("GET /shut/x"), get("GET /fresh")],
            ),
            (
                "[[route]]\norigin = \"app\"\nrate_limit = \"2/h\"",
                vec![get("GET /fresh"), get("GET /fresh"), get("GET /fresh")],
            ),
            (
                "[[route]]\norigin = \"app\"\nrequest_body_max = 3",
                vec![("POST /form", &["Content-Length: 0"]), ("POST /form", &["Content-Length: 9"])],
            ),
            (
                "[policy]\nttl = \"5m\"\nresponse_headers = { set = { X-Made = \"all\" } }\n[[route]]\norigin = \"app\"\n[[route]]\norigin = \"next\"\npath = \"/n\"\nttl = \"1m\"",
                vec![get("GET /silent"), get("GET /silent"), get("GET /n")],
            ),
        ]
    }

    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("printed-vcl-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn origins() -> String {
        let one = |name: &&'static str| format!("[origin.{name}]\nurls = \"http://{}\"\n", origin(name));
        ORIGINS.iter().map(one).collect()
    }

    /// What is compared: status, fields, and the body where it is somebody's own.
    fn ask(larder: &ConfiguredLarder, (line, fields): &Asked) -> (String, Vec<String>, String) {
        let mut stream = TcpStream::connect(larder.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = if fields.iter().any(|field| field.starts_with("Host:")) { "" } else { "Host: a.test\r\n" };
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        stream.write_all(format!("{line} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{line}: {answer}"));
        let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_error_of_larder = matches!(&*status, "403" | "404" | "411" | "413" | "429") && !body.contains(" no. ");
        if is_error_of_larder {
            return (status, Vec::new(), String::new());
        }
        let is_compared = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            FIELDS.contains(&&*name)
        };
        let lines: BTreeSet<String> = head.lines().filter(is_compared).map(str::to_owned).collect();
        let body = if status.starts_with('3') { "" } else { body };
        (status, lines.into_iter().collect(), body.to_owned())
    }

    /// An origin that says its name, what it was asked for and how often it was asked before.
    fn origin(name: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut number = 0;
            for stream in listener.incoming().flatten() {
                number += 1;
                let _ = answer(stream, name, number); // a client that leaves is no matter
            }
        });
        address
    }

    fn answer(stream: TcpStream, name: &str, number: u32) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut line, mut head) = (String::new(), String::new());
        while reader.read_line(&mut line)? > 2 {
            head.push_str(&line);
            line.clear();
        }
        let (method, target) = (head.split(' ').next().unwrap_or_default(), head.split(' ').nth(1).unwrap_or_default());
        let seen = |field: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let values: Vec<&str> =
                lines.filter(|(own, _)| own.eq_ignore_ascii_case(field)).map(|(_, value)| value.trim()).collect();
            format!("{field}={}", values.join("+"))
        };
        let fields =
            ["Cookie", "X-Device", "X-Made", "X-Also", "X-Gone", "Larder-Route", "Larder-Says"].map(seen).join(" ");
        let body = format!("{name} {method} {target} no. {number} {fields}");
        let says = [
            ("fresh", "Cache-Control: max-age=60\r\n"),
            ("login", "Cache-Control: max-age=60\r\n"),
            ("private", "Cache-Control: private, max-age=60\r\n"),
            ("cookie", "Set-Cookie: id=7\r\n"),
        ];
        let says = says.iter().find(|(path, _)| target.contains(path)).map_or("", |(_, says)| says);
        let status = if target.contains("absent") { "404 Not Found" } else { "200 OK" };
        let (length, body) = (body.len(), if method == "HEAD" { "" } else { &body });
        let text = format!(
            "HTTP/1.1 {status}\r\nX-Powered-By: PHP/8\r\n{says}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        (&stream).write_all(text.as_bytes())
    }

    /// The program that is printed of a file.
    fn printed(config: &Path) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        let output = command.args(["config", "show", "--as-vcl", "--config"]).arg(config).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_file_and_the_program_that_is_printed_of_it_answer_the_same() {
        let folder = folder("table");
        let mut differences = Vec::new();
        for (number, (words, requests)) in table().into_iter().enumerate() {
            let name = format!("file-{number}");
            let file = ConfiguredLarder::start(&folder, &name, &format!("{words}\n{}", origins()));
            let program = printed(&folder.join(format!("{name}.toml")));
            // Where responses are stored without their cookies, that is told.
            let is_told = words.contains("force") || words.contains("Set-Cookie");
            assert_eq!(program.contains("#   "), is_told, "{words}: not all of it has a VCL\n{program}");
            let vcl = folder.join(format!("{name}.vcl"));
            std::fs::write(&vcl, &program).unwrap();
            let policy =
                format!("[policy]\nvcl = {:?}\nignore_tracking = true\n{}", vcl.display().to_string(), origins());
            let by_program = ConfiguredLarder::start(&folder, &format!("vcl-{number}"), &policy);
            for asked in &requests {
                let (expect, found) = (ask(&file, asked), ask(&by_program, asked));
                if expect != found {
                    differences.push(format!("{words}\n{asked:?}\n  file: {expect:?}\n  vcl:  {found:?}\n"));
                }
            }
        }
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}
