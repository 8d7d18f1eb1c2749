# The rules that hold when a policy does not decide: every subroutine of a user's program is followed by the one of
# the same name here. They are in small subroutines, so that a program can put its own before any one of them.

vcl 4.1;

# ---- The client's side.

sub vcl_recv {
    call vcl_builtin_recv;
    return (hash);
}

sub vcl_builtin_recv {
    call vcl_req_host;
    call vcl_req_url;
    call vcl_req_method;
    call vcl_req_authorization;
    call vcl_req_cookie;
}

# Host names are the same in any case of letters; HTTP/1.1 does not go without one.
sub vcl_req_host {
    if (req.http.host ~ "[A-Z]") {
        set req.http.host = req.http.host.lower();
    }
    if (!req.http.host && req.esi_level == 0 && req.proto == "HTTP/1.1") {
        return (synth(400));
    }
}

sub vcl_req_url {
    if (req.method == "CONNECT" || req.url ~ "^/") {
        return;
    }
    if (req.method == "OPTIONS" && req.url == "*") {
        return;
    }
    return (synth(400));
}

# An unknown method could mean anything about bodies, so it is not passed on.
sub vcl_req_method {
    if (req.method !~ "^(GET|HEAD|PUT|POST|TRACE|OPTIONS|DELETE|PATCH)$") {
        return (synth(501));
    }
    if (req.method !~ "^(GET|HEAD)$") {
        return (pass);
    }
}

# What is meant for one person is not shared.
sub vcl_req_authorization {
    if (req.http.authorization) {
        return (pass);
    }
}

sub vcl_req_cookie {
    if (req.http.cookie) {
        return (pass);
    }
}

sub vcl_pipe {
    call vcl_builtin_pipe;
    return (pipe);
}

sub vcl_builtin_pipe {
}

sub vcl_pass {
    call vcl_builtin_pass;
    return (fetch);
}

sub vcl_builtin_pass {
}

sub vcl_hash {
    call vcl_builtin_hash;
    return (lookup);
}

sub vcl_builtin_hash {
    hash_data(req.url);
    if (req.http.host) {
        hash_data(req.http.host);
    } else {
        hash_data(server.ip);
    }
}

sub vcl_purge {
    call vcl_builtin_purge;
    return (synth(200, "Purged"));
}

sub vcl_builtin_purge {
}

sub vcl_hit {
    call vcl_builtin_hit;
    return (deliver);
}

sub vcl_builtin_hit {
}

sub vcl_miss {
    call vcl_builtin_miss;
    return (fetch);
}

sub vcl_builtin_miss {
}

sub vcl_deliver {
    call vcl_builtin_deliver;
    return (deliver);
}

sub vcl_builtin_deliver {
}

sub vcl_synth {
    call vcl_builtin_synth;
    return (deliver);
}

sub vcl_builtin_synth {
    set resp.http.content-type = "text/html; charset=utf-8";
    set resp.http.retry-after = "5";
    set resp.body = "<!DOCTYPE html><html><head><title>" + resp.status + " " + resp.reason + "</title></head><body><h1>"
        + resp.status + " " + resp.reason + "</h1><p>Request " + req.xid + "</p></body></html>";
}

# ---- The origin's side.

sub vcl_backend_fetch {
    call vcl_builtin_backend_fetch;
    return (fetch);
}

# A body means nothing with GET, and origins differ in what they make of one.
sub vcl_builtin_backend_fetch {
    if (bereq.method == "GET") {
        unset bereq.body;
    }
}

sub vcl_backend_refresh {
    call vcl_builtin_backend_refresh;
    return (merge);
}

sub vcl_builtin_backend_refresh {
    call vcl_refresh_valid;
    call vcl_refresh_conditions;
    call vcl_refresh_status;
}

# What was purged while it was being validated does not come back.
sub vcl_refresh_valid {
    if (!obj_stale.is_valid) {
        return (error(503, "The stored response is no longer valid"));
    }
}

# Nobody asked whether it changed, so "it did not change" is no answer.
sub vcl_refresh_conditions {
    if (!bereq.http.if-modified-since && !bereq.http.if-none-match) {
        return (error(503, "304 to an unconditional request"));
    }
}

sub vcl_refresh_status {
    if (obj_stale.status != 200) {
        return (error(503, "304 for a response that was no 200"));
    }
}

sub vcl_backend_response {
    call vcl_builtin_backend_response;
    return (deliver);
}

sub vcl_builtin_backend_response {
    call vcl_beresp_range;
    if (bereq.uncacheable) {
        return (deliver);
    }
    call vcl_beresp_stale;
    call vcl_beresp_cookie;
    call vcl_beresp_control;
    call vcl_beresp_vary;
}

sub vcl_beresp_range {
    if (beresp.status != 206 && beresp.status != 416) {
        unset beresp.http.content-range;
    }
}

sub vcl_beresp_stale {
    if (beresp.ttl <= 0s) {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_cookie {
    if (beresp.http.set-cookie) {
        call vcl_beresp_hitmiss;
    }
}

# Surrogate-Control is meant for larder and stands before Cache-Control.
sub vcl_beresp_control {
    if (beresp.http.surrogate-control ~ "(?i)no-store") {
        call vcl_beresp_hitmiss;
    }
    if (!beresp.http.surrogate-control && beresp.http.cache-control ~ "(?i:no-cache|no-store|private)") {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_vary {
    if (beresp.http.vary == "*") {
        call vcl_beresp_hitmiss;
    }
}

# For a while requests for it do not wait for one another.
sub vcl_beresp_hitmiss {
    set beresp.ttl = param.uncacheable_ttl;
    set beresp.uncacheable = true;
    return (deliver);
}

sub vcl_backend_error {
    call vcl_builtin_backend_error;
    return (deliver);
}

sub vcl_builtin_backend_error {
    set beresp.http.content-type = "text/html; charset=utf-8";
    set beresp.http.retry-after = "5";
    set beresp.body = "<!DOCTYPE html><html><head><title>" + beresp.status + " " + beresp.reason
        + "</title></head><body><h1>" + beresp.status + " " + beresp.reason + "</h1><p>Request " + bereq.xid
        + "</p></body></html>";
}

# ---- Beginning and end of the program itself.

sub vcl_init {
    return (ok);
}

sub vcl_fini {
    return (ok);
}
