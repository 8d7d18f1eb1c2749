vcl 4.1;

# As sites that run WordPress write it: who has a session, a password or a comment goes by, everybody else has no cookies.
backend default {
	.host = "127.0.0.1";
	.port = "PORT";
}

sub vcl_recv {
	if (req.method == "PURGE") {
		return (purge);
	}
	if (req.method != "GET" && req.method != "HEAD") {
		return (pass);
	}
	if (req.url ~ "^/wp-(admin|login|cron|json|comments-post)" || req.url ~ "^/xmlrpc" || req.url ~ "preview=true") {
		return (pass);
	}
	if (req.http.Authorization || req.http.Cookie ~ "wordpress_logged_in|wp-postpass|comment_author") {
		return (pass);
	}
	unset req.http.Cookie;
	return (hash);
}

sub vcl_backend_response {
	if (beresp.http.Set-Cookie) {
		set beresp.ttl = 2m;
		set beresp.uncacheable = true;
		return (deliver);
	}
	if (!bereq.uncacheable && beresp.status == 200) {
		# Sites say minutes.
		set beresp.ttl = 3s;
		set beresp.grace = 5s;
	}
}

sub vcl_deliver {
	set resp.http.Cache-Status = "larder";
	if (obj.hits > 0) {
		set resp.http.Cache-Status = "larder; hit";
	}
}
