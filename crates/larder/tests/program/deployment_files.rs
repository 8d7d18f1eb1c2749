//! dist/kubernetes and dist/compose: the schemas of Kubernetes and the reader of Compose take them, what one of them names is there, their
//! configs are those that the program reads, and it answers their probes. No cluster and no container runs here.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};
    use serde_json::{Value, json};

    use crate::answering_origin::{self, target_of};
    use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};

    const MANIFESTS: [&str; 2] = ["dist/kubernetes/larder.yaml", "dist/kubernetes/log.yaml"];

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// What `./setup all` builds with Go. `None`: it could not, and that was said. Said again here, past the test's own output.
    fn tool(name: &str) -> Option<PathBuf> {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../tools");
        if tools.join(name).exists() {
            return Some(tools.join(name));
        }
        assert!(tools.join("go-is-missing").exists(), "{name} is not there: ./setup all builds it");
        let said = format!(
            "NOT RUN: the files of dist/ are not judged by {name}, which ./setup could not build for want of Go\n"
        );
        std::io::stderr().write_all(said.as_bytes()).expect("standard error can be written");
        None
    }

    /// What a program makes of its standard input: whether it ended well, and all that it said.
    fn told(command: &mut Command, text: &str) -> (bool, String) {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        running.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
        let done = running.wait_with_output().expect("it ends");
        let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (done.status.success(), said)
    }

    /// YAML or TOML, by a reader that others wrote.
    fn documents(reads: &str, text: &str) -> Value {
        let script = format!("import sys, json, yaml, tomllib; print(json.dumps({reads}))");
        let (is_read, said) = told(Command::new("python3").args(["-c", &script]), text);
        assert!(is_read, "python3 with yaml is wanted (./setup all): {said}");
        serde_json::from_str(&said).expect("it is JSON")
    }

    fn yaml(text: &str) -> Vec<Value> {
        documents("list(yaml.safe_load_all(sys.stdin))", text).as_array().expect("a list").clone()
    }

    fn toml(text: &str) -> Value {
        documents("tomllib.loads(sys.stdin.read())", text)
    }

    fn object<'a>(all: &'a [Value], kind: &str, name: &str) -> &'a Value {
        let found = all.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    fn config_of_cluster() -> String {
        let all = yaml(&read(MANIFESTS[0]));
        object(&all, "ConfigMap", "larder")["data"]["larder.toml"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn kubernetes_takes_the_manifests_and_would_refuse_mistakes() {
        let Some(kubeconform) = tool("bin/kubeconform") else { return };
        let schemas = format!(
            "{}/../tools/kubernetes/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
            env!("CARGO_TARGET_TMPDIR")
        );
        let judged = |text: &str| {
            told(Command::new(&kubeconform).args(["-strict", "-summary", "-schema-location", &schemas]), text)
        };
        for (path, objects) in MANIFESTS.into_iter().zip([5, 3]) {
            let (is_valid, said) = judged(&read(path));
            assert!(
                is_valid && said.contains(&format!("Valid: {objects}, Invalid: 0, Errors: 0, Skipped: 0")),
                "{path}: {said}"
            );
        }
        for (right, wrong, expect) in [
            ("serviceName:", "service:", "additional properties 'service' not allowed"),
            ("replicas: 3", "replicas: three", "got string, want integer"),
            ("maxUnavailable: 1", "maxUnavailable: true", "got boolean, want integer or string"),
            ("kind: PodDisruptionBudget", "kind: PodDisruption", "could not find schema"),
            ("apiVersion: apps/v1", "apiVersion: apps/v1beta1", "could not find schema"),
        ] {
            let text = read(MANIFESTS[0]);
            assert!(text.contains(right), "{right}");
            let (is_valid, said) = judged(&text.replace(right, wrong));
            assert!(!is_valid && said.contains(expect), "{wrong}: {said}");
        }
    }

    #[test]
    fn compose_takes_its_file_and_would_refuse_mistakes() {
        let Some(compose) = tool("compose-go/cmd") else { return };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("compose-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        let judged = |text: &str| {
            std::fs::write(folder.join("compose.yaml"), text).expect("the target folder can be written");
            told(Command::new(&compose).current_dir(&folder).args(["-format", "json", "compose.yaml"]), "")
        };
        let text = read("dist/compose/compose.yaml");
        let (is_valid, said) = judged(&text);
        assert!(is_valid, "{said}");
        let project: Value = serde_json::from_str(&said).expect("it prints JSON");
        let services = project["services"].as_object().expect("services");
        let names: Vec<&String> = services.keys().collect();
        assert_eq!(names, ["larder-1", "larder-2", "larder-3", "log"]);
        let mut volumes = BTreeSet::new();
        for (name, service) in services.iter().filter(|(name, _)| name.starts_with("larder-")) {
            assert_eq!(&service["hostname"], name, "a node is called as its host is");
            // What a service names is one of the file's: the reader looks at forms alone.
            for (what, key) in [("configs", "source"), ("secrets", "source"), ("volumes", "source")] {
                let of_file = project[what].as_object().expect("it is told");
                let named = service[what].as_array().expect("a list").iter().map(|item| item[key].as_str().unwrap());
                assert!(named.clone().count() > 0 && named.clone().all(|name| of_file.contains_key(name)), "{what}");
            }
            assert!(volumes.insert(service["volumes"][0]["source"].to_string()), "two nodes cannot use one disk");
        }
        for (right, wrong) in [
            ("restart: on-failure", "restarts: on-failure"),
            ("condition: service_started", "condition: [service_started]"),
            ("retries: 3", "retries: [3]"),
        ] {
            assert!(text.contains(right), "{right}");
            assert!(!judged(&text.replace(right, wrong)).0, "{wrong} is taken");
        }
        let config = toml(&read("dist/compose/larder.toml"));
        let peers: Vec<Value> = (1..=3).map(|node| json!(format!("http://larder-{node}:8080"))).collect();
        assert_eq!(config["fleet"]["peers"].as_array(), Some(&peers));
        assert_eq!(config["fleet"]["log"], "redis://log:6379");
        let secrets: Vec<_> = project["secrets"]
            .as_object()
            .expect("secrets")
            .keys()
            .map(|name| format!("/run/secrets/{name}"))
            .collect();
        assert_eq!(
            secrets,
            [&config["admin"]["token_file"], &config["fleet"]["secret_file"]].map(|file| file.as_str().unwrap())
        );
        std::fs::remove_dir_all(&folder).expect("it is there");
    }

    #[test]
    fn what_one_object_names_another_one_is() {
        let all: Vec<Value> = MANIFESTS.iter().flat_map(|path| yaml(&read(path))).collect();
        for set in ["larder", "larder-log"] {
            let set = object(&all, "StatefulSet", set);
            let (spec, labels) = (&set["spec"], &set["spec"]["template"]["metadata"]["labels"]);
            assert_eq!(&spec["selector"]["matchLabels"], labels);
            let name = spec["serviceName"].as_str().unwrap();
            assert_eq!(&object(&all, "Service", name)["spec"]["selector"], labels, "{name}");
            let ports: BTreeSet<&str> =
                container(set)["ports"].as_array().unwrap().iter().filter_map(|port| port["name"].as_str()).collect();
            let named = |of: &Value| of["name"].as_str().expect("a name").to_owned();
            let claims = spec["volumeClaimTemplates"].as_array().unwrap().iter().map(|claim| named(&claim["metadata"]));
            let volumes = spec["template"]["spec"]["volumes"].as_array().into_iter().flatten().map(named);
            let volumes: BTreeSet<String> = claims.chain(volumes).collect();
            let mounts: BTreeSet<String> =
                container(set)["volumeMounts"].as_array().unwrap().iter().map(named).collect();
            assert_eq!(volumes, mounts);
            let of_set =
                all.iter().filter(|object| object["kind"] == "Service" && &object["spec"]["selector"] == labels);
            let targets = of_set.flat_map(|service| service["spec"]["ports"].as_array().unwrap());
            assert!(targets.map(|port| port["targetPort"].as_str().unwrap()).all(|target| ports.contains(target)));
        }
        let labels = &object(&all, "StatefulSet", "larder")["spec"]["selector"]["matchLabels"];
        assert_eq!(&object(&all, "PodDisruptionBudget", "larder")["spec"]["selector"]["matchLabels"], labels);
        let policy = &object(&all, "NetworkPolicy", "larder-log")["spec"];
        assert_eq!(&policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"], labels);
        assert_eq!(
            &policy["podSelector"]["matchLabels"],
            &object(&all, "StatefulSet", "larder-log")["spec"]["selector"]["matchLabels"]
        );
        assert_eq!(object(&all, "Service", "larder-nodes")["spec"]["clusterIP"], "None", "a name with all addresses");
    }

    fn container(set: &Value) -> &Value {
        &set["spec"]["template"]["spec"]["containers"][0]
    }

    fn port_of(set: &Value, name: &str) -> u64 {
        let ports = container(set)["ports"].as_array().unwrap();
        ports.iter().find(|port| port["name"] == name).and_then(|port| port["containerPort"].as_u64()).expect("a port")
    }

    /// What is written as Kubernetes writes sizes, or as larder does.
    fn bytes(size: &Value) -> u64 {
        let text = size.as_str().expect("a size").trim_end_matches('B');
        let (number, unit) = text.split_at(text.len() - 2);
        number.parse::<u64>().expect("a number")
            << match unit {
                "Mi" => 20,
                "Gi" => 30,
                unit => panic!("{unit}"),
            }
    }

    #[test]
    fn the_manifest_gives_what_its_config_takes() {
        let all: Vec<Value> = MANIFESTS.iter().flat_map(|path| yaml(&read(path))).collect();
        let (set, config) = (object(&all, "StatefulSet", "larder"), toml(&config_of_cluster()));
        assert_eq!(config["listen"][0]["address"], format!("0.0.0.0:{}", port_of(set, "http")));
        assert_eq!(config["admin"]["address"], format!("0.0.0.0:{}", port_of(set, "admin")));
        let nodes = object(&all, "Service", "larder-nodes");
        assert_eq!(
            nodes["spec"]["ports"][0]["port"],
            port_of(set, "http"),
            "the port of the pods: nobody stands between"
        );
        assert_eq!(config["fleet"]["peers"], json!([format!("dns:larder-nodes:{}", port_of(set, "http"))]));
        let log = &object(&all, "Service", "larder-log")["spec"]["ports"][0]["port"];
        assert_eq!(config["fleet"]["log"], format!("redis://larder-log:{log}"));
        assert!(config["fleet"].get("name").is_none(), "each pod has a name of its own");
        let secret = set["spec"]["template"]["spec"]["volumes"][1]["secret"]["secretName"].as_str().unwrap();
        assert!(read(MANIFESTS[0]).contains(&format!("create secret generic {secret} ")));
        for file in [&config["admin"]["token_file"], &config["fleet"]["secret_file"]] {
            let name = file.as_str().unwrap().strip_prefix("/etc/larder/secret/").expect("where the secret is mounted");
            assert!(read(MANIFESTS[0]).contains(&format!("--from-literal={name}=")), "{name}");
        }
        let mounts = container(set)["volumeMounts"].as_array().unwrap();
        assert!(mounts.iter().any(|mount| mount["mountPath"] == config["disk"][0]["path"]));
        let storage = &set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"];
        assert!(bytes(&config["disk"][0]["size"]) * 10 <= bytes(storage) * 9, "a file system needs room, too");
        let memory = &container(set)["resources"]["limits"]["memory"];
        assert!(bytes(&config["memory"]["size"]) * 3 <= bytes(memory) * 2, "docs/running.md: by half or more");
        let pod = &set["spec"]["template"]["spec"];
        let waits_s = container(set)["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
        let grace_s = proxy::limits::Limits::default().drain_grace.as_secs();
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > waits_s + grace_s + 10);
    }

    /// One of their configs, where it can run here: in a folder of its own, before an origin of the test's.
    struct Node {
        folder: PathBuf,
        listens: SocketAddr,
        admin: SocketAddr,
        text: String,
    }

    impl Node {
        fn of(name: &str, config: &str, origin: SocketAddr) -> Node {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("deployed-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("the target folder can be written");
            let secret = |name: &str| {
                use std::os::unix::fs::OpenOptionsExt;
                let mut options = std::fs::File::options();
                let file = options.create(true).write(true).truncate(true).mode(0o440).open(folder.join(name));
                file.and_then(|mut file| file.write_all(&[b'7'; 48])).expect("the target folder can be written");
            };
            ["fleet.secret", "admin.token"].into_iter().for_each(secret);
            let (listens, admin, log) = (free_address(), free_address(), free_address());
            let here = folder.display().to_string();
            let parsed = toml(config);
            let own = |at: &Value| format!("\"{}\"", at.as_str().expect("a text"));
            let text = config
                .replace(&own(&parsed["listen"][0]["address"]), &format!("\"{listens}\""))
                .replace(&own(&parsed["admin"]["address"]), &format!("\"{admin}\""))
                .replace(&own(&parsed["origin"]["site"]["urls"][0]), &format!("\"http://{origin}\""))
                .replace(&own(&parsed["fleet"]["log"]), &format!("\"redis://{log}\""))
                .replace(&own(&parsed["disk"][0]["size"]), "\"64MiB\"")
                .replace("/etc/larder/secret/", &format!("{here}/"))
                .replace("/run/secrets/", &format!("{here}/"))
                .replace("/var/cache/larder", &here);
            std::fs::write(folder.join("larder.toml"), &text).expect("the target folder can be written");
            Node { folder, listens, admin, text }
        }

        fn start(&self) -> Running {
            let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
            command
                .args(["serve", "--no-supervisor", "--config"])
                .arg(self.folder.join("larder.toml"))
                .stdin(Stdio::null());
            let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("larder starts"));
            wait_until_it_listens(self.admin);
            running
        }
    }

    impl Drop for Node {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    /// Status and body, as a kubelet asks: by the address, without a token.
    fn ask(at: SocketAddr, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(at).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
        (head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), body.to_owned())
    }

    fn slow_origin() -> SocketAddr {
        answering_origin::start(|head| {
            if target_of(head) == "/slow" {
                std::thread::sleep(Duration::from_secs(3));
            }
            Some("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsite".to_owned())
        })
    }

    #[test]
    fn larder_check_has_nothing_to_say_of_the_configs() {
        for (name, config) in [("check-k", config_of_cluster()), ("check-c", read("dist/compose/larder.toml"))] {
            let node = Node::of(name, &config, ([203, 0, 113, 1], 80).into());
            let check = |text: &str| {
                std::fs::write(node.folder.join("larder.toml"), text).unwrap();
                let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
                told(command.args(["check", "--json", "--file-only"]).arg(node.folder.join("larder.toml")), "")
            };
            let (is_good, said) = check(&node.text);
            let told: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
            assert!(is_good && told["files"][0]["warnings"] == json!([]), "{name}: {said}");
            assert!(!check(&node.text.replace("secret_file", "secret_fil")).0, "{name}: a mistake is taken");
        }
    }

    #[test]
    fn the_probes_of_the_manifest_are_answered_until_nobody_new_is_to_come() {
        let all = yaml(&read(MANIFESTS[0]));
        let probes = container(object(&all, "StatefulSet", "larder"));
        let path = |probe: &str| {
            assert_eq!(probes[probe]["httpGet"]["port"], "admin", "{probe}");
            probes[probe]["httpGet"]["path"].as_str().expect("a path").to_owned()
        };
        let node = Node::of("probes", &config_of_cluster(), slow_origin());
        let mut running = node.start();
        assert_eq!(ask(node.admin, &path("startupProbe")), (200, "ready\n".to_owned()));
        assert_eq!(ask(node.admin, &path("readinessProbe")).0, 200);
        assert_eq!(ask(node.admin, &path("livenessProbe")), (200, "ok\n".to_owned()));
        assert_eq!(
            ask(node.listens, "/"),
            (200, "site".to_owned()),
            "neither the log nor the name of the nodes is there"
        );
        let at = node.listens;
        let under_way = std::thread::spawn(move || ask(at, "/slow"));
        std::thread::sleep(Duration::from_millis(500));
        kill_process(Pid::from_child(&running.0), Signal::TERM).expect("it runs");
        wait_for("who drains is not ready", || {
            ask(node.admin, &path("readinessProbe")) == (503, "draining\n".to_owned())
        });
        assert_eq!(ask(node.admin, &path("livenessProbe")).0, 200, "and is not to be killed for that");
        assert_eq!(under_way.join().expect("an answer"), (200, "site".to_owned()));
        assert!(running.0.wait().expect("it ends").success());
    }

    /// By the very command of the file, with the port of the test's larder.
    #[test]
    fn the_probe_of_compose_tells_who_is_ready() {
        let project = yaml(&read("dist/compose/compose.yaml")).remove(0);
        let command: Vec<&str> = project["services"]["larder-1"]["healthcheck"]["test"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let ["CMD", "bash", "-c", script] = command[..] else { panic!("{command:?}") };
        let node = Node::of("compose", &read("dist/compose/larder.toml"), slow_origin());
        let port = toml(&read("dist/compose/larder.toml"))["admin"]["address"]
            .as_str()
            .unwrap()
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned();
        assert!(script.contains(&format!("/{port};")), "{script}");
        let script = script.replace(&port, &node.admin.port().to_string()).replace("$$", "$");
        let is_ready = || told(Command::new("bash").args(["-c", &script]), "").0;
        assert!(!is_ready(), "nobody is there");
        let running = node.start();
        assert!(is_ready());
        let at = node.listens;
        let under_way = std::thread::spawn(move || ask(at, "/slow"));
        std::thread::sleep(Duration::from_millis(500));
        kill_process(Pid::from_child(&running.0), Signal::TERM).expect("it runs");
        wait_for("who drains is not ready", || !is_ready());
        assert_eq!(under_way.join().expect("an answer").0, 200);
    }
}
