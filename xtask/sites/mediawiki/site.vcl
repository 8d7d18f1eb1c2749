vcl 4.1;

# As wikis behind a cache have it: who has a session goes by, everybody else has no cookies.
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
	if (req.http.Authorization || req.http.Cookie ~ "(session|UserID|UserName|Token|LoggedOut)=") {
		return (pass);
	}
	unset req.http.Cookie;
	return (hash);
}

sub vcl_deliver {
	set resp.http.Cache-Status = "larder";
	if (obj.hits > 0) {
		set resp.http.Cache-Status = "larder; hit";
	}
}
