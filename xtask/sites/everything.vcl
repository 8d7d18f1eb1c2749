vcl 4.1;

# Wrong on purpose: whatever is asked for by GET is everybody's for a moment. The judge must notice.
backend default {
	.host = "127.0.0.1";
	.port = "PORT";
}

sub vcl_recv {
	if (req.method == "GET" || req.method == "HEAD") {
		return (hash);
	}
	return (pass);
}

sub vcl_backend_response {
	set beresp.ttl = 2s;
	set beresp.grace = 0s;
	return (deliver);
}

sub vcl_deliver {
	set resp.http.Cache-Status = "larder";
	if (obj.hits > 0) {
		set resp.http.Cache-Status = "larder; hit";
	}
}
