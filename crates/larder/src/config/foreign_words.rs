//! Words of nginx, Varnish, Caddy and Squid, and what to write in larder.toml in their place.

/// What somebody meant.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// Whose word it is.
    pub program: &'static str,
    pub write: &'static str,
}

const NGINX: &str = "nginx";
const VCL: &str = "VCL";
const VARNISH: &str = "Varnish";
const CADDY: &str = "Caddy";
const SQUID: &str = "Squid";

const ORIGIN: &str = "write [origin.NAME] with urls = [\"http://HOST:PORT\"], and origin = \"NAME\" in [[route]]";
const LISTEN: &str = "write [[listen]] with address = \"*:80\"";
const CERTIFICATES: &str = "write cert = \"FILE\" and key = \"FILE\" in [listen.tls], below a [[listen]]";
const LOG: &str = "write [log] with path = \"/var/log/larder/access.log\"";
const DISK: &str = "write [[disk]] with path = \"DIR\" and size = \"10GiB\"";
const MEMORY: &str = "write [memory] with size = \"512MiB\"";
const PROGRAM: &str = "VCL stands in a file of its own: write [policy] with vcl = \"FILE\"";
const LIFE: &str = "write ttl = \"5m\" in [[route]], or for all routes in [policy]";
const BYPASS: &str = "write cookies = { bypass = [\"NAME\"], keep = [] } in [[route]]";
const LOGIN: &str = "write basic_auth = \"FILE\" in [[route]]";
const IMPORT_NGINX: &str = "larder import nginx.conf translates a whole file";

/// Word, program, what to write.
const WORDS: &[(&str, &str, &str)] = &[
    ("proxy_pass", NGINX, ORIGIN),
    ("upstream", NGINX, "write [origin.NAME] with urls = [\"http://HOST:PORT\", …]"),
    (
        "server",
        NGINX,
        "write [[route]] with host = \"NAME\", and [[listen]] with address; larder import nginx.conf translates a whole file",
    ),
    ("location", NGINX, "write [[route]] with path = \"/PATH\"; larder import nginx.conf translates a whole file"),
    ("http", NGINX, IMPORT_NGINX),
    ("events", NGINX, IMPORT_NGINX),
    (
        "try_files",
        NGINX,
        "write fallback = \"/index.html\" in a [[route]] with root; beside an origin with fastcgi nothing, for there what is no file is answered by \
         index.php by itself",
    ),
    ("alias", NGINX, "write root = \"DIR\" in [[route]]"),
    ("autoindex", NGINX, "write listing = \"html\" in a [[route]] with root"),
    ("gzip", NGINX, "texts are compressed by themselves; [compress] has what can be changed"),
    ("expires", NGINX, "write cache_control = \"max-age=SECONDS\" in a [[route]] with root"),
    ("ssl_certificate", NGINX, CERTIFICATES),
    ("ssl_certificate_key", NGINX, CERTIFICATES),
    ("ssl_protocols", NGINX, "write min_version = \"1.3\" in [listen.tls]"),
    ("access_log", NGINX, LOG),
    ("error_page", NGINX, "write error_pages = { 404 = \"/404.html\" } in [[route]]"),
    ("client_max_body_size", NGINX, "write request_body_bytes_max = \"10MiB\" in [limits]"),
    ("keepalive_timeout", NGINX, "write idle_timeout = \"60s\" in [limits]"),
    ("proxy_connect_timeout", NGINX, "write connect_timeout = \"5s\" in [limits]"),
    ("proxy_read_timeout", NGINX, "write first_byte_timeout and between_bytes_timeout in [limits]"),
    ("proxy_cache_path", NGINX, DISK),
    ("proxy_cache", NGINX, "what may be cached is cached by itself: docs/what-is-cached.md"),
    ("proxy_cache_valid", NGINX, LIFE),
    ("fastcgi_cache_valid", NGINX, LIFE),
    ("proxy_cache_bypass", NGINX, BYPASS),
    ("proxy_no_cache", NGINX, BYPASS),
    ("fastcgi_cache_bypass", NGINX, BYPASS),
    ("fastcgi_no_cache", NGINX, BYPASS),
    (
        "fastcgi_pass",
        NGINX,
        "write [origin.NAME] with fastcgi = \"unix:/PATH\", and root and origin in [[route]]: docs/php.md",
    ),
    (
        "proxy_set_header",
        NGINX,
        "write request_headers = { set = { NAME = \"VALUE\" } } in [[route]]; of the Host field, host = \"NAME\" in [origin.NAME]; \
         X-Forwarded-For is sent by itself",
    ),
    ("add_header", NGINX, "write response_headers = { set = { NAME = \"VALUE\" } } in [[route]]"),
    ("return", NGINX, "write redirect = \"URL\" or respond = \"TEXT\" in [[route]]"),
    ("auth_basic", NGINX, LOGIN),
    ("auth_basic_user_file", NGINX, LOGIN),
    ("limit_req", NGINX, "write rate_limit = \"10/s\" in [[route]]"),
    ("worker_processes", NGINX, "write workers = \"auto\" above all sections"),
    ("worker_connections", NGINX, "write connections_max in [limits]"),
    ("memc_pass", NGINX, "write memcached = [\"HOST:PORT\"] and mode = \"nginx-memc\" in [[route]]"),
    ("memcached_pass", NGINX, "write memcached = [\"HOST:PORT\"] in [[route]]"),
    ("backend", VCL, ORIGIN),
    ("director", VCL, "write [origin.NAME] with several urls"),
    ("sub", VCL, PROGRAM),
    ("vcl_recv", VCL, PROGRAM),
    ("import", VCL, PROGRAM),
    (
        "acl",
        VCL,
        "write purge_from = [\"NETWORK\"] in [policy] for who may purge; VCL stands in a file of its own, [policy] vcl",
    ),
    ("storage", VARNISH, MEMORY),
    ("malloc", VARNISH, MEMORY),
    ("reverse_proxy", CADDY, ORIGIN),
    ("file_server", CADDY, "write root = \"DIR\" in [[route]]"),
    ("encode", CADDY, "texts are compressed by themselves; [compress] has what can be changed"),
    ("handle", CADDY, "write [[route]] with path = \"/PATH\""),
    ("handle_path", CADDY, "write [[route]] with path = \"/PATH\""),
    ("bind", CADDY, LISTEN),
    ("http_port", SQUID, "write [[listen]] with address = \"*:3128\" and mode = \"forward\""),
    ("https_port", SQUID, "write [[listen]] with address = \"*:443\", and [listen.tls] with cert below it"),
    (
        "cache_peer",
        SQUID,
        "write [[forward.parent]] with address = \"HOST:PORT\"; of an accelerator, [origin.NAME] with urls",
    ),
    ("cache_mem", SQUID, MEMORY),
    ("cache_dir", SQUID, DISK),
    ("http_access", SQUID, "write allow_clients = [\"NETWORK\"] in [forward]"),
    ("maximum_object_size", SQUID, "write object_bytes_max = \"256MiB\" in [limits]"),
    ("visible_hostname", SQUID, "write server_name = \"NAME\" above all sections"),
];

/// Keys of ours that are written otherwise in a statement of another program.
const STATEMENTS: &[(&str, &str, &str)] = &[
    ("listen", NGINX, LISTEN),
    ("server_name", NGINX, "write host = [\"NAME\"] in [[route]]; server_name = \"NAME\" is the name in Via here"),
    ("root", NGINX, "write root = \"DIR\" in [[route]]"),
    ("index", NGINX, "write index = [\"index.html\"] in a [[route]] with root"),
    ("vcl", VCL, PROGRAM),
    ("probe", VCL, PROGRAM),
    ("tls", CADDY, CERTIFICATES),
    ("log", CADDY, LOG),
    ("route", CADDY, "write [[route]] with path = \"/PATH\""),
];

/// Of a word that stands where a key should be.
pub fn as_key(word: &str) -> Option<Advice> {
    among(WORDS, word)
}

/// Of the first word of a line that is no TOML.
pub fn as_statement(word: &str) -> Option<Advice> {
    among(STATEMENTS, word).or_else(|| among(WORDS, word))
}

fn among(words: &[(&str, &'static str, &'static str)], word: &str) -> Option<Advice> {
    words.iter().find(|(known, ..)| *known == word).map(|&(_, program, write)| Advice { program, write })
}
