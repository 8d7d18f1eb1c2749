//! What stands at the end of a command's `--help`: examples, what the flags do not say, and exit codes.

pub const TOP_EXAMPLES: &str = "\
Examples:
  larder serve --origin http://127.0.0.1:3000     accelerate what answers on port 3000
  larder demo                                     see it work in ten seconds
  larder check larder.toml                        find mistakes before a reload does
  larder explain http://www.example.org/          why is this not served from the cache?
  larder purge --tag product-7                    drop what has changed
  larder bench -c 50 -t 10 http://127.0.0.1:8080/ load it, and check every answer
  larder varnishd -?                              take the place of varnishd, with its command line

docs/README.md lists the manual by task; docs/larder.toml has every setting with its default.";

pub const SERVE_EXAMPLES: &str = "\
Examples:
  larder serve --origin http://127.0.0.1:3000
  larder serve --listen '*:80' --origin http://10.0.0.5 --origin http://10.0.0.6 --memory 2GiB --log access.log
  larder serve --root /srv/www --listen '*:80'
  larder serve --forward 127.0.0.1:3128           curl -x http://127.0.0.1:3128 http://example.org/
  larder serve --origin http://127.0.0.1:3000 --tls '*:443' --cert site.pem --key site.key
  larder serve --origin http://127.0.0.1:3000 --tls '*:443' --acme-domain www.example.org --acme-agree-terms
  larder serve --config larder.toml
  larder serve --vcl /etc/varnish/default.vcl --listen '*:80' -p default_ttl=1h

Flags win over the config file: --listen, --tls and --forward replace its [[listen]] sections, --origin and --root replace its
origins and routes. Sizes: K, M, G and KiB, MiB, GiB are 1024s; KB, MB, GB are 1000s.

Signals: TERM or INT finishes the requests under way and ends; a second one ends at once. HUP reads the config again,
loads the VCL file and the certificates anew and reopens the log; a broken config is refused and the old one stays. `larder reload`
asks for the same, and says what came of it.
Certificates that change on disk are read again within seconds, without a signal.

Exit codes: 0 ended on a signal; 1 the config is wrong, an address is in use, or a worker died; 2 wrong flags.";

pub const DEMO_EXAMPLES: &str = "\
Examples:
  larder demo              serves until Ctrl-C and shows live numbers
  larder demo --once       ends after the measurement";

pub const FLEET_STATUS_EXAMPLES: &str = "\
Examples:
  larder fleet status --config larder.toml
  larder fleet status --admin 127.0.0.1:9180 --json

ORDER is the last purge of the log that a node has carried out, LAG how many it is behind. A node that has been silent for longer than its
lease serves nothing that was purged meanwhile: it asks the origin. docs/fleet.md says what follows from what.

Exit codes: 0 told; 1 this larder belongs to no fleet, or nobody answers; 2 wrong flags.";

pub const NOTE_EXAMPLES: &str = "\
Examples:
  larder note shop 4.2 is out --config larder.toml
  larder note 'checkout: the new one for half of all' --admin unix:/run/larder-admin.sock

The dashboard draws it beside reloads, restarts and purges, for a day; GET /history has it as JSON. One line, 120 bytes at most.

Exit codes: 0 written; 1 refused, or nobody answers; 2 wrong flags.";

pub const INIT_EXAMPLES: &str = "\
Examples:
  larder init                                             asks what is behind, which names it has, and where it listens
  larder init --origin http://127.0.0.1:3000
  larder init --root /srv/wordpress --fastcgi unix:/run/php/php-fpm.sock --preset wordpress
  larder init --root /srv/www --host www.example.org --acme-email admin@example.org -o /etc/larder/larder.toml

It never writes over a file without --force, and writes nothing that `larder check` would refuse. Without a terminal it asks nothing.

Exit codes: 0 written; 1 the file is there, cannot be written, or would be wrong; 2 wrong flags, or nobody to ask.";

pub const CHECK_EXAMPLES: &str = "\
Examples:
  larder check larder.toml
  larder check --config larder.toml                    the same, as `larder serve` has it
  larder check default.vcl --vcl-path /etc/varnish     find mistakes in VCL, without Varnish or a C compiler
  larder check --json larder.toml | jq '.files[].errors'

Of a config it also looks whether this machine, and this user, could serve by it: addresses that are taken or need a right, folders
and files that are not there or may not be written, certificates that have expired, names that do not resolve, origins on this
machine where nobody listens. On another machine, such as one that builds, --file-only leaves that out.

Exit codes: 0 all files are good, perhaps with warnings; 1 one is not; 2 wrong flags; 3 the files are good, but `larder serve` would not
start here.";

pub const RELOAD_EXAMPLES: &str = "\
Examples:
  larder reload --config larder.toml
  larder reload --admin unix:/run/larder-admin.sock
  larder check larder.toml && larder reload --config larder.toml

The larder that runs reads again what it was started with, as it does for HUP: its larder.toml, its VCL file, its certificates. --config only
says where its admin address and the token are. Connections and what is stored stay. What is broken is refused whole, and the old one stays.

Exit codes: 0 reloaded; 1 refused, or no larder answers; 2 wrong flags.";

pub const EXPLAIN_EXAMPLES: &str = "\
Examples:
  larder explain http://www.example.org/shop/ --config larder.toml
  larder explain http://www.example.org/ -H 'Cookie: session=x' -H 'Accept-Encoding: gzip' --admin unix:/run/larder-admin.sock
  larder explain https://www.example.org/ --as-if now+1h --config larder.toml        will it still be fresh then?
  larder explain http://www.example.org/ --json --config larder.toml | jq '.reasons[].word'

It asks the larder that runs, over its admin address, which takes the token of [admin] or its UNIX socket. Nothing is done of the request: no
origin is asked, nothing is counted, stored or dropped. docs/explain.md says what each line means.

Exit codes: 0 explained; 1 refused, or no larder answers; 2 wrong flags.";

pub const SHOW_EXAMPLES: &str = "\
Examples:
  larder config show --config larder.toml               all that holds
  larder config show --config larder.toml --changed     only what is no default
  larder config show --origin http://127.0.0.1:3000 --memory 1GiB > larder.toml
  larder config show --config larder.toml --as-vcl      its routes as a program

The flags are those of `larder serve`. Behind each value stands where it comes from: a default, FILE:LINE, a flag, or `parameter`: a
limit that was set by Varnish's name for it. Tokens and logins are shown, too.

Exit codes: 0 shown; 1 the config is wrong; 2 wrong flags.";

pub const RUNNING_EXAMPLES: &str = "\
Examples:
  larder config running --config larder.toml
  larder config running --config larder.toml --json | jq .changed

It asks at the admin address, with the token of [admin] or through its UNIX socket, and prints a larder.toml: what the larder that runs has read when it was
started or last reloaded, with \"(secret)\" in place of tokens and passwords. Above it stands which sections of its file say something else by now.

Exit codes: 0 shown; 1 refused, or nobody answers; 2 wrong flags.";

pub const SCHEMA_EXAMPLES: &str = "\
Examples:
  larder config schema > larder.schema.json

Even Better TOML (VS Code) and Taplo take it by a first line `#:schema ./larder.schema.json` in larder.toml; docs/config.md has more.";

pub const IMPORT_EXAMPLES: &str = "\
Examples:
  larder import old.vcl > new.vcl
  larder import old.vcl -o new.vcl --from 2
  larder import /etc/nginx/nginx.conf -o larder.toml
  larder import /etc/apache2/apache2.conf -o larder.toml
  larder import /etc/haproxy/haproxy.cfg -o larder.toml
  larder import /etc/squid/squid.conf -o larder.toml
  larder import /etc/caddy/Caddyfile -o larder.toml

VCL keeps its text, comments and layout; renamed words are replaced in it. What cannot be carried over becomes a comment at
its place. Of every file, what was not carried over is listed, what means something else now is noted, and the result is
checked. What a configuration kept closed stays closed.

Exit codes: 0 all was carried over and the new file is good; 1 something was not, or the file cannot be read; 2 wrong flags.";

pub const BENCH_EXAMPLES: &str = "\
Examples:
  larder bench http://127.0.0.1:8080/                           10 connections for 10 seconds
  larder bench -c 500 -n 10000 http://127.0.0.1:8080/a.css      so many requests, as with ab
  larder bench --rate 2000 --poisson -t 60S http://127.0.0.1/   a timetable, whatever the server does
  larder bench --rate 100,200,400 --step 30S http://127.0.0.1/  one rate after another
  larder bench --urls list.txt --random -c 100 http://127.0.0.1:8080/
  larder bench --urls list.txt --proxy 127.0.0.1:3128           URLs of many hosts, through a forward proxy
  larder bench https://www.example.com/ --tls-resume            over TLS; sessions are resumed
  larder bench --h2 --streams 10 -c 64 https://www.example.com/ HTTP/2, up to 640 requests under way
  larder bench --unix /run/app.sock http://app.example/         over a UNIX socket
  larder bench --wsess 2000,10,2 --rate 300 --timeout 5 http://127.0.0.1/   sessions, as with httperf
  larder bench --replay access.log --speed 2 http://127.0.0.1:8080/         what a log asked, twice as fast

A closed loop asks again when it was answered: it finds the most that a server can do. An open loop (--rate) asks by a
timetable: it finds what users feel at that load. Sessions (--wsess, --wsesslog) begin by a timetable; each asks one thing
after another on a connection of its own, with time to think, and ends with its first request that fails. A session that
finds all connections (-c) busy waits, and the latency of its first request includes the wait; one that never begins is
'dropped'. 'from intended' is the latency from the moment at which a request was meant to start; 'from send' begins when
it was sent, which hides a server's pauses.

A replay (--replay) reads common, combined, larder's JSON and Squid's logs, and asks their GET and HEAD lines again. Where
a log has only the second of a request, the requests of one second are spread evenly over it.

The first answer of each URL is the measure of all later ones: they must have its length and bytes. An answer that fails
a check is counted under its kind of error, and not as an answer.

Flags of ab, siege, http_load, httperf, wrk and h2load are understood, and --as prints what they print: docs/bench.md.

Exit codes: 0 every answer was good; 1 one was not, or the server is down; 2 wrong flags.";

pub const LAB_EXAMPLES: &str = "\
Examples:
  larder lab origin --listen 127.0.0.1:9001               curl 'http://127.0.0.1:9001/?s=20k&t=500&r=404'
  larder lab origin --stall-every 1s --stall-for 200ms    answers nothing every now and then
  larder lab origin --tls --h2 --authority ca.pem         over TLS and HTTP/2; https://expired.localhost:8081/ fails
  larder lab null --listen 127.0.0.1:9000 --size 6221     the least that a server can do for an answer
  larder lab report results.json --html report.html       the table and the page of a run that is over
  larder lab compare before.json after.json               what became better or worse, beyond the noise

docs/lab-origin.md lists what host, path and query of a request to `lab origin` mean. TERM or INT ends the servers.

Exit codes: 0 ended in good order; 1 an address in use, no results file, or something became worse; 2 wrong flags.";
