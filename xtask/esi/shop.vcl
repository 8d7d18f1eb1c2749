# A shop's policy in the idioms of those that Magento and others publish: what is hashed, what is passed, pages whose blocks are
# parts with lives of their own. BACKEND_PORT is put in by `cargo xtask esi-pages`.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "BACKEND_PORT";
}

sub vcl_recv {
    if (req.restarts == 0 && req.esi_level == 0) {
        unset req.http.X-Shop-Level;
    }
    if (req.esi_level > 0) {
        set req.http.X-Shop-Level = req.esi_level;
    }
    # Marketing parameters are nobody's page.
    if (req.url ~ "(\?|&)(gclid|utm_[a-z]+)=") {
        set req.url = regsuball(req.url, "(gclid|utm_[a-z]+)=[-_A-Za-z0-9+%.]+&?", "");
        set req.url = regsub(req.url, "[?|&]+$", "");
    }
    set req.url = std.querysort(req.url);
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    if (req.url ~ "^/(checkout|customer)") {
        return (pass);
    }
    set req.http.X-Group = regsub(req.http.Cookie, ".*group=([a-z]+).*", "\1");
    if (req.http.X-Group == req.http.Cookie) {
        set req.http.X-Group = "all";
    }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_hash {
    hash_data(req.http.X-Group);
}

sub vcl_backend_response {
    set beresp.grace = 1h;
    if (beresp.http.Content-Type ~ "text") {
        set beresp.do_esi = true;
        set beresp.do_gzip = true;
    }
    if (beresp.status != 200 && beresp.status != 404) {
        set beresp.ttl = 0s;
        set beresp.uncacheable = true;
        return (deliver);
    }
    if (beresp.http.Cache-Control ~ "private") {
        set beresp.uncacheable = true;
        set beresp.ttl = 60s;
        return (deliver);
    }
    if (beresp.ttl > 0s) {
        unset beresp.http.Set-Cookie;
    }
}

sub vcl_deliver {
    unset resp.http.X-Varnish;
    unset resp.http.Via;
    unset resp.http.Age;
}
