//! The functions of the built-in modules, as data: `vmod_signatures` reads it.
//!
//! A line is a function: `TYPE name(TYPE argument=default, [TYPE optional], …) in WHERE`, where WHERE is left away for
//! functions that may be called anywhere. `object name(…)` begins an object, and the lines after it that begin their
//! names with a dot are its methods. `ENUM{A,B}` is one of these words. `until X` marks what Varnish X dropped. What `works in WHERE`
//! may be called anywhere, and fails elsewhere when it runs.

/// The modules, each with its functions.
#[rustfmt::skip]
pub const VMODS: [(&str, &str); 18] = [
    ("std", "
REAL random(REAL lo, REAL hi)
REAL round(REAL r)
VOID collect(HEADER hdr, STRING sep=\", \")
STRING querysort(STRING)
STRING toupper(STRANDS s)
STRING tolower(STRANDS s)
STRING strstr(STRING s1, STRING s2)
BOOL fnmatch(STRING pattern, STRING subject, BOOL pathname=true, BOOL noescape=false, BOOL period=false)
STRING fileread(STRING)
BLOB blobread(STRING)
BOOL file_exists(STRING path)
BOOL healthy(BACKEND be)
INT port(IP ip)
DURATION duration([STRING s], [DURATION fallback], [REAL real], [INT integer])
BYTES bytes([STRING s], [BYTES fallback], [REAL real], [INT integer])
INT integer([STRING s], [INT fallback], [BOOL bool], [BYTES bytes], [DURATION duration], [REAL real], [TIME time])
IP ip(STRING s, [IP fallback], BOOL resolve=true, [STRING p])
REAL real([STRING s], [REAL fallback], [INT integer], [BOOL bool], [BYTES bytes], [DURATION duration], [TIME time])
TIME time([STRING s], [TIME fallback], [REAL real], [INT integer])
STRING strftime(TIME time, STRING format)
VOID log(STRANDS s)
VOID syslog(INT priority, STRANDS s)
VOID timestamp(STRING s)
BOOL syntax(REAL)
STRING getenv(STRING name)
BOOL cache_req_body(BYTES size) in recv
VOID late_100_continue(BOOL late) in recv
VOID set_ip_tos(INT tos) in client
VOID rollback(HTTP h) in backend recv pass hash purge miss hit deliver synth
BOOL ban(STRING)
STRING ban_error()
TIME now()
DURATION timed_call(SUB)
VOID rfc_ttl() in backend_response backend_refresh
INT real2integer(REAL r, INT fallback) until 8.0
TIME real2time(REAL r, TIME fallback) until 8.0
INT time2integer(TIME t, INT fallback) until 8.0
REAL time2real(TIME t, REAL fallback) until 8.0
"),
    ("directors", "
object round_robin()
VOID .add_backend(BACKEND)
VOID .remove_backend(BACKEND)
BACKEND .backend()
object fallback(BOOL sticky=false)
VOID .add_backend(BACKEND)
VOID .remove_backend(BACKEND)
BACKEND .backend()
object random()
VOID .add_backend(BACKEND, REAL)
VOID .remove_backend(BACKEND)
BACKEND .backend()
object hash()
VOID .add_backend(BACKEND, REAL weight=1.0)
VOID .remove_backend(BACKEND)
BACKEND .backend(STRANDS)
object shard()
VOID .set_warmup(REAL probability=0.0)
VOID .set_rampup(DURATION duration=0)
VOID .associate([BLOB param])
BOOL .add_backend(BACKEND backend, [STRING ident], [DURATION rampup], [REAL weight])
BOOL .remove_backend([BACKEND backend], [STRING ident])
BOOL .clear()
BOOL .reconfigure(INT replicas=67)
INT .key(STRANDS)
BACKEND .backend([ENUM{HASH,URL,KEY,BLOB} by=HASH], [INT key], [BLOB key_blob], [INT alt=0], [REAL warmup=-1], [BOOL rampup=true], [ENUM{CHOSEN,IGNORE,ALL} healthy=CHOSEN], [BLOB param], [ENUM{NOW,LAZY} resolve])
VOID .debug(INT)
object shard_param()
VOID .clear() in pipe backend housekeeping
VOID .set([ENUM{HASH,URL,KEY,BLOB} by], [INT key], [BLOB key_blob], [INT alt], [REAL warmup], [BOOL rampup], [ENUM{CHOSEN,IGNORE,ALL} healthy]) works in pipe backend housekeeping
STRING .get_by()
INT .get_key()
INT .get_alt()
REAL .get_warmup()
BOOL .get_rampup()
STRING .get_healthy()
BLOB .use() in pipe backend housekeeping
BACKEND lookup(STRING) works in housekeeping
"),
    ("cookie", "
VOID clean()
VOID delete(STRING cookiename)
VOID filter(STRING filterstring)
VOID filter_except(STRING filterstring) until 7.0
VOID filter_re(REGEX expression)
VOID keep(STRING filterstring)
VOID keep_re(REGEX expression)
STRING format_date(TIME now, DURATION timedelta)
STRING format_rfc1123(TIME now, DURATION timedelta) until 7.0
STRING get(STRING cookiename)
STRING get_re(REGEX expression)
STRING get_string()
BOOL isset(STRING cookiename)
VOID parse(STRING cookieheader)
VOID set(STRING cookiename, STRING value)
"),
    ("purge", "
INT hard() in hit miss
INT soft(DURATION ttl=0, DURATION grace=-1, DURATION keep=-1) in hit miss
"),
    ("blob", "
BLOB decode(ENUM{IDENTITY,BASE64,BASE64URL,BASE64URLNOPAD,BASE64CF,HEX,URL} decoding=IDENTITY, INT length=0, STRANDS encoded)
STRING encode(ENUM{IDENTITY,BASE64,BASE64URL,BASE64URLNOPAD,BASE64CF,HEX,URL} encoding=IDENTITY, ENUM{LOWER,UPPER,DEFAULT} case=DEFAULT, BLOB blob)
STRING transcode(ENUM{IDENTITY,BASE64,BASE64URL,BASE64URLNOPAD,BASE64CF,HEX,URL} decoding=IDENTITY, ENUM{IDENTITY,BASE64,BASE64URL,BASE64URLNOPAD,BASE64CF,HEX,URL} encoding=IDENTITY, ENUM{LOWER,UPPER,DEFAULT} case=DEFAULT, INT length=0, STRANDS encoded)
BOOL same(BLOB, BLOB)
BOOL equal(BLOB, BLOB)
INT length(BLOB)
BLOB sub(BLOB, BYTES length, BYTES offset=0)
object blob(ENUM{IDENTITY,BASE64,BASE64URL,BASE64URLNOPAD,BASE64CF,HEX,URL} decoding=IDENTITY, STRANDS encoded)
BLOB .get()
STRING .encode(ENUM{IDENTITY,BASE64,BASE64URL,BASE64URLNOPAD,BASE64CF,HEX,URL} encoding=IDENTITY, ENUM{LOWER,UPPER,DEFAULT} case=DEFAULT)
"),
    ("unix", "
STRING user() in client backend
STRING group() in client backend
INT uid() in client backend
INT gid() in client backend
"),
    ("proxy", "
STRING alpn() in client
STRING authority() in client
BOOL is_ssl() in client
BOOL client_has_cert_sess() in client
BOOL client_has_cert_conn() in client
INT ssl_verify_result() in client
STRING ssl_version() in client
STRING client_cert_cn() in client
STRING ssl_cipher() in client
STRING cert_sign() in client
STRING cert_key() in client
"),
    ("vtc", "
VOID barrier_sync(STRING addr, DURATION timeout=0)
BACKEND no_backend()
STEVEDORE no_stevedore()
IP no_ip()
VOID panic(STRANDS)
VOID sleep(DURATION)
VOID workspace_alloc(ENUM{client,backend,session,thread} which, INT size)
BYTES workspace_reserve(ENUM{client,backend,session,thread} which, INT size)
INT workspace_free(ENUM{client,backend,session,thread} which)
VOID workspace_snapshot(ENUM{client,backend,session,thread} which)
VOID workspace_reset(ENUM{client,backend,session,thread} which)
BOOL workspace_overflowed(ENUM{client,backend,session,thread} which)
VOID workspace_overflow(ENUM{client,backend,session,thread} which)
BLOB workspace_dump(ENUM{client,backend,session,thread} which, ENUM{s,f,r} where, BYTES off=0, BYTES len=64)
INT typesize(STRING)
BLOB proxy_header(ENUM{v1,v2} version, IP client, IP server, [STRING authority])
VOID vsl(INT vxid, STRING tag, ENUM{c,b} side, STRANDS s)
VOID vsl_replay(STRANDS s)
"),
    ("h2", "
BOOL is() in client
DURATION rapid_reset([DURATION threshold]) in client
INT rapid_reset_limit([INT number]) in client
DURATION rapid_reset_period([DURATION duration]) in client
REAL rapid_reset_budget() in client
"),
    ("xkey", "
INT purge(STRING keys)
INT softpurge(STRING keys)
"),
    ("header", "
VOID append(HEADER, STRANDS)
VOID copy(HEADER, HEADER)
STRING get(HEADER header, REGEX regex)
VOID remove(HEADER header, REGEX regex)
VOID regsub(HTTP, REGEX regex, STRING sub, BOOL all=false)
HEADER dyn(HTTP, STRING)
"),
    ("var", "
VOID set(STRING key, STRING value)
STRING get(STRING)
VOID global_set(STRING, STRING)
STRING global_get(STRING)
VOID set_int(STRING key, INT value)
INT get_int(STRING key)
VOID set_string(STRING key, STRING value)
STRING get_string(STRING key)
VOID set_real(STRING key, REAL value)
REAL get_real(STRING key)
VOID set_duration(STRING key, DURATION value)
DURATION get_duration(STRING key)
VOID set_ip(STRING key, IP value)
IP get_ip(STRING key)
VOID set_backend(STRING key, BACKEND value)
BACKEND get_backend(STRING key)
VOID clear()
"),
    ("vsthrottle", "
BOOL is_denied(STRING key, INT limit, DURATION period, DURATION block=0)
VOID return_token(STRING key, INT limit, DURATION period, DURATION block=0)
INT remaining(STRING key, INT limit, DURATION period, DURATION block=0)
DURATION blocked(STRING key, INT limit, DURATION period, DURATION block)
VOID remove_bucket(STRING key, INT limit, DURATION period, DURATION block=0)
"),
    ("saintmode", "
VOID denylist(DURATION expires) in backend
VOID blacklist(DURATION expires) in backend
STRING status()
object saintmode(BACKEND backend, INT threshold)
BACKEND .backend()
INT .denylist_count()
INT .blacklist_count()
BOOL .is_healthy()
"),
    ("str", "
INT count(STRING s)
BOOL startswith(STRING s1, STRING s2)
BOOL endswith(STRING s1, STRING s2)
BOOL contains(STRING s1, STRING s2)
STRING take(STRING s, INT n, INT offset=0)
STRING reverse(STRING s)
STRING split(STRING s, INT n, STRING sep=\" \\t\")
BOOL token_intersect(STRING str1, STRING str2, [STRING separators])
"),
    ("bodyaccess", "
INT rematch_req_body(REGEX re) in client
VOID hash_req_body() in hash
INT len_req_body() in client
VOID log_req_body(STRING prefix=\"\", INT length=200) in client
"),
    ("dynamic", "
object director(STRING port=\"http\", STRING hosts_header=\"\", [PROBE probe], [ACL whitelist], DURATION ttl=3600, DURATION connect_timeout=0, DURATION first_byte_timeout=0, DURATION between_bytes_timeout=0, DURATION domain_usage_timeout=7200, DURATION first_lookup_timeout=10, INT max_connections=0, INT proxy_header=0, [ENUM{cfg,dns,min,max} ttl_from], DURATION retry_after=30, [BACKEND via], INT keep=3, [BLOB resolver], [STRING authority], [STRING host_header], [ACL share], DURATION domain_usage=0)
BACKEND .backend(STRING host=\"\", STRING port=\"\", [STRING authority])
BACKEND .service(STRING service)
VOID .debug(BOOL enable)
object resolver()
"),
    ("tls", "
BOOL is_tls() in client
STRING version() in client
STRING ja3() in client
STRING cipher() in client
STRING authority() in client
STRING alpn() in client
STRING cert_sign() in client
STRING cert_key() in client
"),
];

/// Modules that larder does not have: the name, who makes it, and what to use instead.
#[rustfmt::skip]
pub const FOREIGN: &[(&str, &str, &str)] = &[
    ("ykey", "Varnish Enterprise", "use vmod xkey"),
    ("headerplus", "Varnish Enterprise", "use vmod header"),
    ("cookieplus", "Varnish Enterprise", "use vmod cookie"),
    ("urlplus", "Varnish Enterprise", "use `std.querysort(…)` and `regsub(…)`, or `[policy] ignore_query` in larder.toml"),
    ("kvstore", "Varnish Enterprise", "use `var.global_set(…)` and `var.global_get(…)` of vmod var"),
    ("goto", "Varnish Enterprise", "use vmod dynamic, or a backend: names are looked up again by larder itself"),
    ("activedns", "Varnish Enterprise", "use vmod dynamic, or a backend: names are looked up again by larder itself"),
    ("udo", "Varnish Enterprise", "use vmod directors"),
    ("http", "Varnish Enterprise", "requests of the program's own are not supported"),
    ("file", "Varnish Enterprise", "use `std.fileread(…)`, or serve files by `root` in larder.toml"),
    ("s3", "Varnish Enterprise", "put a gateway that signs requests behind larder"),
    ("utils", "Varnish Enterprise", "use vmod std"),
    ("synthbackend", "Varnish Enterprise", "use `return (error(200))` and vcl_backend_error"),
    ("synthetic", "Varnish Enterprise", "use `synthetic(…)`"),
    ("xbody", "Varnish Enterprise", "bodies cannot be rewritten"),
    ("edgestash", "Varnish Enterprise", "bodies cannot be rewritten; use ESI"),
    ("aclplus", "Varnish Enterprise", "use an acl"),
    ("redis", "libvmod-redis", "use `var.global_set(…)` of vmod var for what need not be shared"),
    ("brotli", "Varnish Enterprise", "larder chooses encodings itself; leave the import away"),
    ("mse", "Varnish Enterprise", "choose stores in larder.toml"),
    ("mse4", "Varnish Enterprise", "choose stores in larder.toml"),
    ("stat", "Varnish Enterprise", "see /metrics on the admin address"),
    ("json", "Varnish Enterprise", "use `regsub(…)`"),
    ("jwt", "Varnish Enterprise", "verify tokens in front of larder, or at the origin"),
    ("crypto", "Varnish Enterprise", "use vmod blob for encodings"),
    ("digest", "libvmod-digest", "use vmod blob for encodings; hashes are not supported"),
    ("geoip", "libvmod-geoip", "look the address up in front of larder and pass it in a header"),
    ("geoip2", "libvmod-geoip2", "look the address up in front of larder and pass it in a header"),
    ("maxminddb", "libvmod-maxminddb", "look the address up in front of larder and pass it in a header"),
    ("netmapper", "libvmod-netmapper", "use an acl"),
    ("querysort", "libvmod-querysort", "use `std.querysort(…)`"),
    ("queryfilter", "libvmod-queryfilter", "use `regsuball(…)`, or `[policy] ignore_query` in larder.toml"),
    ("querymodifier", "libvmod-querymodifier", "use `regsuball(…)`, or `[policy] ignore_query` in larder.toml"),
    ("boltsort", "libvmod-boltsort", "use `std.querysort(…)`"),
    ("urlcode", "libvmod-urlcode", "use `blob.transcode(decoding=URL, …)` of vmod blob"),
    ("basicauth", "libvmod-basicauth", "compare `req.http.Authorization` with a constant"),
    ("re", "libvmod-re", "use `regsub(…)` to take groups out"),
    ("re2", "libvmod-re2", "use `~` and `regsub(…)`; chains of tests are matched at once"),
    ("selector", "libvmod-selector", "use `~` and `elseif`; chains of tests are matched at once"),
    ("pesi", "libvmod-pesi", "use `set beresp.do_esi = true;`"),
    ("uuid", "libvmod-uuid", "use `req.xid`"),
    ("rtstatus", "libvmod-rtstatus", "see /metrics on the admin address"),
    ("curl", "libvmod-curl", "requests of the program's own are not supported"),
    ("reqwest", "vmod_reqwest", "requests of the program's own are not supported"),
    ("softpurge", "varnish-modules of old", "use `purge.soft(…)` of vmod purge"),
    ("tcp", "varnish-modules", "sockets are larder's own affair; leave the import away"),
    ("accept", "varnish-modules", "normalise the header with `regsub(…)`"),
    ("named", "libvmod-named", "use vmod dynamic"),
    ("leastconn", "libvmod-leastconn", "use `directors.random()` of vmod directors"),
    ("bodyreplace", "a vmod of Varnish's makers", "bodies cannot be rewritten"),
    ("math", "Varnish after 8.0", "use INT and REAL arithmetic"),
    ("debug", "Varnish's own tests", "it is for testing Varnish; leave the import away"),
    ("example", "an example", "leave the import away"),
];
