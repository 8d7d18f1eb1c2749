//! Which words of another program's directive nobody has to keep from others, by its name: one table for all programs. A directive that is not
//! in it is said by its name alone, for who has a secret in it is not known here. It reads no word.

/// What of a directive is said. A word that looks like a secret by itself is none of it, whatever stands here: `shown_word.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarmlessWords {
    /// All of them.
    All,
    /// As many.
    First(usize),
    /// As many, and behind them switches and options whose names are known.
    Options(usize),
    /// The name of a field or a variable, and its value where everybody reads it.
    Field,
    /// A status, and where it leads. Of texts nothing.
    Answer,
    /// An action of HAProxy's, preceded by as many, and when it is done.
    Rule(usize),
    /// What is asked of a request, preceded by as many, and what it is compared with where that is no word of a client's.
    Test(usize),
    /// An address and options; or a name, an address and words of HAProxy's.
    Server,
    /// Of a program none of what it is started with.
    Program,
    /// All, unless its first word is one of these: then that alone.
    Unless(&'static [&'static str]),
    /// All where its first word is one of these, else the first alone.
    Where(&'static [&'static str]),
    /// All where what its first word asks of a request begins so, else no word behind as many.
    Asks(&'static [&'static str], usize),
}

use HarmlessWords::{All, Answer, Asks, Field, First, Options, Program, Rule, Server, Test, Unless, Where};

/// Directives of nginx's that are said in whole, in small letters.
const OF_NGINX: &str = "\
    absolute_redirect accept_mutex access_log add_after_body add_before_body addition_types aio alias allow \
    ancient_browser auth_basic auth_basic_user_file auth_request autoindex autoindex_exact_size autoindex_format \
    autoindex_localtime break brotli brotli_comp_level brotli_static brotli_types charset charset_map \
    charset_types chunked_transfer_encoding client_body_in_file_only client_body_in_single_buffer \
    client_body_temp_path connection_pool_size create_full_put_path daemon dav_access dav_methods \
    debug_connection default_type deny directio directio_alignment disable_symlinks error_log error_page etag \
    events expires fastcgi_bind fastcgi_buffering fastcgi_cache fastcgi_cache_bypass fastcgi_cache_key \
    fastcgi_cache_lock fastcgi_cache_methods fastcgi_cache_min_uses fastcgi_cache_path fastcgi_cache_use_stale \
    fastcgi_cache_valid fastcgi_catch_stderr fastcgi_hide_header fastcgi_ignore_headers fastcgi_index \
    fastcgi_intercept_errors fastcgi_keep_conn fastcgi_next_upstream fastcgi_next_upstream_tries \
    fastcgi_no_cache fastcgi_pass fastcgi_pass_header fastcgi_split_path_info fastcgi_temp_path flv geo \
    grpc_pass gunzip gzip gzip_comp_level gzip_disable gzip_http_version gzip_min_length gzip_proxied \
    gzip_static gzip_types gzip_vary hash http http2 http2_push http2_push_preload http3 if_modified_since \
    ignore_invalid_headers image_filter include index internal ip_hash keepalive keepalive_disable \
    keepalive_requests keyval_zone large_client_header_buffers least_conn limit_conn limit_conn_log_level \
    limit_conn_status limit_conn_zone limit_except limit_rate limit_rate_after limit_req limit_req_log_level \
    limit_req_status limit_req_zone lingering_close load_module location lock_file log_format log_not_found \
    log_subrequest map map_hash_bucket_size master_process max_ranges memc_pass memcached_pass merge_slashes \
    min_delete_depth mirror mirror_request_body modern_browser mp4 msie_padding msie_refresh multi_accept \
    open_file_cache open_file_cache_errors open_file_cache_min_uses open_file_cache_valid open_log_file_cache \
    output_buffers override_charset pcre_jit perl_modules pid port_in_redirect post_action postpone_output \
    proxy_bind proxy_buffering proxy_cache proxy_cache_background_update proxy_cache_bypass \
    proxy_cache_convert_head proxy_cache_key proxy_cache_lock proxy_cache_max_range_offset proxy_cache_methods \
    proxy_cache_min_uses proxy_cache_path proxy_cache_revalidate proxy_cache_use_stale proxy_cache_valid \
    proxy_cookie_domain proxy_cookie_path proxy_force_ranges proxy_headers_hash_bucket_size proxy_hide_header \
    proxy_http_version proxy_ignore_client_abort proxy_ignore_headers proxy_intercept_errors proxy_limit_rate \
    proxy_method proxy_next_upstream proxy_next_upstream_tries proxy_no_cache proxy_pass proxy_pass_header \
    proxy_pass_request_body proxy_pass_request_headers proxy_redirect proxy_request_buffering \
    proxy_socket_keepalive proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_ciphers proxy_ssl_name \
    proxy_ssl_protocols proxy_ssl_server_name proxy_ssl_session_reuse proxy_ssl_trusted_certificate \
    proxy_ssl_verify proxy_ssl_verify_depth proxy_store proxy_store_access proxy_temp_path random real_ip_header \
    real_ip_recursive recursive_error_pages referer_hash_max_size request_pool_size reset_timedout_connection \
    resolver rewrite rewrite_log root satisfy scgi_pass scgi_temp_path sendfile sendfile_max_chunk server_name \
    server_name_in_redirect server_tokens set_real_ip_from slice source_charset split_clients ssi \
    ssi_silent_errors ssi_types ssl ssl_certificate ssl_certificate_key ssl_ciphers ssl_client_certificate \
    ssl_conf_command ssl_crl ssl_dhparam ssl_early_data ssl_ecdh_curve ssl_ocsp ssl_prefer_server_ciphers \
    ssl_protocols ssl_reject_handshake ssl_session_cache ssl_session_ticket_key ssl_session_tickets ssl_stapling \
    ssl_stapling_file ssl_stapling_responder ssl_stapling_verify ssl_trusted_certificate ssl_verify_client \
    ssl_verify_depth state sticky stub_status subrequest_output_buffer_size tcp_nodelay tcp_nopush thread_pool \
    timer_resolution track_uploads try_files types underscores_in_headers uninitialized_variable_warn upstream \
    use userid userid_name uwsgi_pass uwsgi_temp_path valid_referers variables_hash_max_size worker_connections \
    worker_cpu_affinity worker_priority worker_processes worker_rlimit_core worker_rlimit_nofile \
    working_directory xslt_types zone";

/// Directives of Apache's that are said in whole, in small letters.
const OF_APACHE: &str = "\
    <directory <directorymatch <files <filesmatch <ifdefine <ifmodule <ifversion <limit <limitexcept <location \
    <locationmatch <proxy <proxymatch <requireall <requireany <requirenone <virtualhost acceptfilter \
    acceptpathinfo accessfilename addcharset adddefaultcharset addencoding addhandler addicon addlanguage \
    addoutputfilter addoutputfilterbytype addtype aliasmatch allowconnect allowencodedslashes allowmethods \
    allowoverride allowoverridelist authbasicauthoritative authbasicprovider authdigestdomain authdigestprovider \
    authgroupfile authmerging authname authtype authuserfile authzsendforbiddenonfailure bufferedlogs \
    cachedefaultexpire cachedisable cacheenable cachelock cachequickhandler cacheroot contentdigest customlog \
    dav deflatecompressionlevel directoryindex directoryindexredirect directoryslash documentroot enablemmap \
    enablesendfile errorlog errorlogformat expiresactive expiresbytype expiresdefault extendedstatus \
    fallbackresource fileetag forcetype group h2direct h2upgrade h2windowsize headername hostnamelookups \
    httpprotocoloptions includeoptional indexignore indexoptions keepalivetimeout languagepriority \
    limitinternalrecursion limitrequestbody limitrequestfields limitrequestfieldsize limitrequestline listen \
    loadmodule logformat loglevel maxclients maxconnectionsperchild maxkeepaliverequests maxrangesoverlaps \
    maxrequestworkers maxspareservers maxsparethreads mimemagicfile minspareservers minsparethreads mutex \
    namevirtualhost options order passengerapproot passengerenabled passenv pidfile protocols \
    protocolshonororder proxyaddheaders proxyerroroverride proxyiobuffersize proxymatch proxypassinherit \
    proxypassmatch proxypassreverse proxypassreversecookiedomain proxypassreversecookiepath proxypreservehost \
    proxyreceivebuffersize proxyrequests proxystatus proxytimeout proxyvia readmename redirect redirectmatch \
    redirectpermanent redirecttemp remoteipheader remoteipinternalproxy remoteiptrustedproxy removehandler \
    removetype requestreadtimeout rewritebase rewriteengine rewriteoptions rewriterule scoreboardfile \
    scriptalias scriptaliasmatch scriptsock serveradmin serveralias serverlimit servername serverpath serverroot \
    serversignature servertokens sethandler setinputfilter setoutputfilter sslcacertificatefile \
    sslcacertificatepath sslcarevocationfile sslcertificatechainfile sslcertificatefile sslcertificatekeyfile \
    sslciphersuite sslcompression sslengine sslhonorcipherorder sslinsecurerenegotiation ssloptions sslprotocol \
    sslproxycheckpeername sslproxyengine sslproxyverify sslrandomseed sslrenegbuffersize sslsessioncache \
    sslsessioncachetimeout sslsessiontickets sslstaplingcache sslstaplingrespondertimeout \
    sslstaplingreturnrespondererrors sslstrictsnivhostcheck sslusestapling sslverifyclient sslverifydepth \
    startservers threadsperchild traceenable transferlog typesconfig undefine unsetenv usecanonicalname \
    usecanonicalphysicalport userdir virtualdocumentroot wsgiapplicationgroup wsgiprocessgroup wsgiscriptalias \
    xsendfile xsendfilepath";

/// Directives of HAProxy's that are said in whole, in small letters.
const OF_HAPROXY: &str = "\
    backend backlog balance bind ca-base cache chroot compression cpu-map crt-base default_backend default_bind \
    defaults description disabled dispatch enabled error-log-format errorfile expose-experimental-directives \
    frontend fullconn gid global grace hard-stop-after hash-type http-reuse load-server-state-from-file \
    localpeer log-format log-format-sd log-send-hostname log-tag lua-prepend-path mailers master-worker max-age \
    max-object-size maxconn maxconnrate maxpipes maxsessrate maxsslconn mode monitor-net monitor-uri nameserver \
    nbproc nbthread node peer peers persist process-vary program rate-limit resolvers retries retry-on ring \
    server-state-base server-state-file server-template set-dumpable spread-checks ssl-default-bind-ciphers \
    ssl-default-bind-ciphersuites ssl-default-bind-options ssl-default-server-ciphers \
    ssl-default-server-ciphersuites ssl-default-server-options ssl-dh-param-file ssl-server-verify stick-table \
    timeout total-max-size transparent tune.bufsize tune.maxaccept tune.maxrewrite tune.ssl.default-dh-param uid \
    ulimit-n unique-id-header userlist zero-warning";

/// Directives of Caddy's that are said in whole, in small letters.
const OF_CADDY: &str = "\
    acme_ca admin auto_https browse client_ip client_ip_headers copy_headers debug default_sni dial_timeout \
    disable_canonical_uris email encode expect_continue_timeout file_server flush_interval format forward_auth \
    frankenphp grace_period handle handle_errors handle_path health_interval health_port health_timeout \
    health_uri hide host http_port https_port interval lb_retries lb_try_duration lb_try_interval level \
    local_certs max_fails method metrics minimum_length on_demand on_demand_tls output path path_regexp \
    persist_config php_fastcgi php_server pprof precompressed read_timeout redir remote_ip request_body \
    response_header_timeout reverse_proxy roll_keep roll_size route servers skip_install_trust skip_log split \
    strict_sni_host strip_prefix tls to transport trusted_proxies trusted_proxies_strict unhealthy_status uri \
    write_timeout";

/// Directives of Squid's that are said in whole, in small letters.
const OF_SQUID: &str = "\
    adaptation_access always_direct cache_dir cache_effective_group cache_effective_user cache_log cache_mem \
    cache_mgr cache_peer_access cache_replacement_policy cache_store_log cache_swap_high cache_swap_low \
    client_db client_lifetime client_netmask client_persistent_connections collapsed_forwarding connect_retries \
    coredump_dir debug_options delay_access delay_class delay_parameters delay_pools detect_broken_pconn \
    digest_generation dns_defnames dns_nameservers dns_packet_max dns_v4_first email_err_data \
    err_page_stylesheet error_default_language error_directory follow_x_forwarded_for forward_max_tries \
    forward_timeout forwarded_for fqdncache_size ftp_passive half_closed_clients hierarchy_stoplist \
    high_response_time_warning host_verify_strict hosts_file htcp_port http_access http_access2 \
    http_reply_access httpd_suppress_version_string icap_enable icon_directory icp_access icp_port \
    ident_lookup_access ie_refresh ignore_expect_100 ipcache_size log_access log_fqdn log_ip_on_direct \
    log_mime_hdrs logfile_rotate max_filedesc max_filedescriptors max_open_disk_fds maximum_object_size \
    maximum_object_size_in_memory memory_cache_mode memory_pools memory_pools_limit memory_replacement_policy \
    mime_table minimum_expiry_time minimum_object_size negative_dns_ttl negative_ttl netdb_filename never_direct \
    offline_mode pid_filename pinger_enable pipeline_prefetch positive_dns_ttl prefer_direct query_icmp \
    quick_abort_max quick_abort_min quick_abort_pct range_offset_limit read_ahead_gap refresh_pattern \
    relaxed_header_parser reload_into_ims reply_body_max_size reply_header_access reply_header_max_size \
    request_body_max_size request_header_access request_header_max_size retry_on_error \
    server_persistent_connections shutdown_lifetime snmp_port ssl_bump sslcrtd_children sslproxy_cert_error \
    store_avg_object_size store_dir_select_algorithm strip_query_terms tcp_outgoing_address tcp_outgoing_tos \
    udp_incoming_address udp_outgoing_address unique_hostname uri_whitespace url_rewrite_access \
    url_rewrite_children vary_ignore_expire via visible_hostname workers";

/// Those with words of both kinds.
const OTHERS: [(HarmlessWords, &[&str]); 20] = [
    (
        Field,
        &[
            "set",
            "proxy_set_header",
            "grpc_set_header",
            "fastcgi_param",
            "uwsgi_param",
            "scgi_param",
            "auth_request_set",
            "add_header",
            "add_trailer",
            "header_up",
            "header_down",
            "request_header",
            "header",
            "requestheader",
            "request_header_add",
            "request_header_replace",
            "reply_header_replace",
        ],
    ),
    (Options(0), &["proxyset", "wsgidaemonprocess"]),
    (Options(1), &["cookie", "balancermember", "https_port"]),
    (Options(2), &["proxypass"]),
    (Options(4), &["cache_peer"]),
    (Server, &["server"]),
    (Unless(&["auth"]), &["stats"]),
    (
        First(1),
        &["user", "option", "lua-load", "import", "setenv", "presetenv", "define", "setenvif", "setenvifnocase"],
    ),
    (First(1), &["browsermatch", "dns", "acme_dns", "external_acl_type", "peers", "uri", "cert_issuer", "ident"]),
    (
        First(1),
        &["http-check", "tcp-check", "crypto", "unlinkd_program", "url_rewrite_program", "ssl_engine", "set-var"],
    ),
    (First(2), &["header_regexp", "log", "lb_policy"]),
    (Answer, &["return", "respond", "error", "errordocument", "deny_info"]),
    (
        Rule(0),
        &["http-request", "http-response", "http-after-response", "redirect", "use_backend", "use-server", "block"],
    ),
    (Rule(1), &["tcp-request", "tcp-response"]),
    (Test(1), &["acl"]),
    (Test(0), &["not"]),
    (
        Where(&["all", "ip", "host", "local", "valid-user", "not", "user", "group", "method", "forward-dns"]),
        &["require"],
    ),
    (
        Asks(
            &[
                "%{HTTP_HOST}",
                "%{REQUEST_FILENAME}",
                "%{REQUEST_URI}",
                "%{REQUEST_METHOD}",
                "%{REQUEST_SCHEME}",
                "%{HTTPS}",
                "%{SERVER_",
                "%{REMOTE_ADDR}",
                "%{DOCUMENT_ROOT}",
            ],
            1,
        ),
        &["rewritecond"],
    ),
    (
        Asks(
            &[
                "($host",
                "($http_host",
                "($request_method",
                "($scheme",
                "($uri",
                "($server_",
                "($https",
                "($ssl_protocol",
                "($request_filename",
                "(-",
                "(!-",
            ],
            0,
        ),
        &["if"],
    ),
    (Program, &["auth_param"]),
];

/// Whatever a directive is about that ends so, it is a number.
const ENDINGS: [&str; 5] = ["_timeout", "_size", "_buffers", "_bucket_size", "timeout"];

/// What is said of the directive of this name, in small letters. `None`: it is not known.
pub fn harmless_words(name: &str) -> Option<HarmlessWords> {
    let other = OTHERS.iter().find(|(_, names)| names.contains(&name)).map(|(known, _)| *known);
    let is_all = || {
        let lists = [OF_NGINX, OF_APACHE, OF_HAPROXY, OF_CADDY, OF_SQUID];
        let mut all = lists.iter().flat_map(|list| list.split_whitespace());
        ENDINGS.iter().any(|end| name.ends_with(end)) || all.any(|known| known == name)
    };
    other.or_else(|| is_all().then_some(All))
}
