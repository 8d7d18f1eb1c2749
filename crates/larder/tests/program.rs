//! Tests of the program as a process: hostile bytes on real sockets, a recording origin behind, faults of the
//! machine, and the load generator before origins that fail. One binary, so that it is linked once. What the rows of
//! the tables mean stands in spec/bad-input.

#[path = "program/acme_orders.rs"]
mod acme_orders;
#[path = "program/answer_stream.rs"]
mod answer_stream;
#[path = "program/answering_origin.rs"]
mod answering_origin;
#[path = "program/answers_explained.rs"]
mod answers_explained;
#[path = "program/apache_beside.rs"]
mod apache_beside;
#[path = "program/as_tools.rs"]
mod as_tools;
#[path = "program/bad_input.rs"]
mod bad_input;
#[path = "program/bench_codings.rs"]
mod bench_codings;
#[path = "program/bench_command.rs"]
mod bench_command;
#[path = "program/bench_counts.rs"]
mod bench_counts;
#[path = "program/bench_latency.rs"]
mod bench_latency;
#[path = "program/bench_over_http2.rs"]
mod bench_over_http2;
#[path = "program/bench_over_tls.rs"]
mod bench_over_tls;
#[path = "program/bench_paces.rs"]
mod bench_paces;
#[path = "program/body_bombs.rs"]
mod body_bombs;
#[path = "program/browser_on_report.rs"]
mod browser_on_report;
#[path = "program/browser_over_tls.rs"]
mod browser_over_tls;
#[path = "program/browser_through_proxy.rs"]
mod browser_through_proxy;
#[path = "program/browser_with_dictionaries.rs"]
mod browser_with_dictionaries;
#[path = "program/bundle_site.rs"]
mod bundle_site;
#[path = "program/caddy_cases.rs"]
mod caddy_cases;
#[path = "program/cgroup_limit.rs"]
mod cgroup_limit;
#[path = "program/clock_steps.rs"]
mod clock_steps;
#[path = "program/coded_answers.rs"]
mod coded_answers;
#[path = "program/completed_in_shells.rs"]
mod completed_in_shells;
#[path = "program/config_schema.rs"]
mod config_schema;
#[path = "program/configured_larder.rs"]
mod configured_larder;
#[path = "program/counted_responses.rs"]
mod counted_responses;
#[path = "program/dashboard_history.rs"]
mod dashboard_history;
#[path = "program/dashboard_in_browser.rs"]
mod dashboard_in_browser;
#[path = "program/deployment_files.rs"]
mod deployment_files;
#[path = "program/descriptor_faults.rs"]
mod descriptor_faults;
#[path = "program/dictionaries_by_curl.rs"]
mod dictionaries_by_curl;
#[path = "program/disk_faults.rs"]
mod disk_faults;
#[path = "program/documented_examples.rs"]
mod documented_examples;
#[path = "program/dry_run_and_real.rs"]
mod dry_run_and_real;
#[path = "program/esi_inputs.rs"]
mod esi_inputs;
#[path = "program/esi_rounds.rs"]
mod esi_rounds;
#[path = "program/explained_requests.rs"]
mod explained_requests;
#[path = "program/explained_words.rs"]
mod explained_words;
#[path = "program/fake_http2.rs"]
mod fake_http2;
#[path = "program/fake_memcached.rs"]
mod fake_memcached;
#[path = "program/faults_behind_tls.rs"]
mod faults_behind_tls;
#[path = "program/faulty_origin.rs"]
mod faulty_origin;
#[path = "program/fenced_in.rs"]
mod fenced_in;
#[path = "program/fenced_larder.rs"]
mod fenced_larder;
#[path = "program/fleet_nodes.rs"]
mod fleet_nodes;
#[path = "program/fleet_of_three.rs"]
mod fleet_of_three;
#[path = "program/fleet_over_tls.rs"]
mod fleet_over_tls;
#[path = "program/forward_proxy.rs"]
mod forward_proxy;
#[path = "program/frame_notation.rs"]
mod frame_notation;
#[path = "program/given_up_root.rs"]
mod given_up_root;
#[path = "program/http2_answers.rs"]
mod http2_answers;
#[path = "program/http2_clients.rs"]
mod http2_clients;
#[path = "program/http2_inputs.rs"]
mod http2_inputs;
#[path = "program/http2_limits.rs"]
mod http2_limits;
#[path = "program/http2_nginx.rs"]
mod http2_nginx;
#[path = "program/http2_origins.rs"]
mod http2_origins;
#[path = "program/http2_site.rs"]
mod http2_site;
#[path = "program/import_command.rs"]
mod import_command;
#[path = "program/imported_apache.rs"]
mod imported_apache;
#[path = "program/imported_apache_sites.rs"]
mod imported_apache_sites;
#[path = "program/imported_beside.rs"]
mod imported_beside;
#[path = "program/imported_caddy.rs"]
mod imported_caddy;
#[path = "program/imported_guards.rs"]
mod imported_guards;
#[path = "program/imported_haproxy.rs"]
mod imported_haproxy;
#[path = "program/imported_haproxy_holes.rs"]
mod imported_haproxy_holes;
#[path = "program/imported_memcached.rs"]
mod imported_memcached;
#[path = "program/imported_nginx.rs"]
mod imported_nginx;
#[path = "program/imported_nginx_holes.rs"]
mod imported_nginx_holes;
#[path = "program/imported_nginx_lists.rs"]
mod imported_nginx_lists;
#[path = "program/imported_nginx_named.rs"]
mod imported_nginx_named;
#[path = "program/imported_nginx_ports.rs"]
mod imported_nginx_ports;
#[path = "program/imported_nginx_tls.rs"]
mod imported_nginx_tls;
#[path = "program/imported_nginx_tries.rs"]
mod imported_nginx_tries;
#[path = "program/imported_proxy.rs"]
mod imported_proxy;
#[path = "program/init_command.rs"]
mod init_command;
#[path = "program/input_table.rs"]
mod input_table;
#[path = "program/judge.rs"]
mod judge;
#[path = "program/lab_codings.rs"]
mod lab_codings;
#[path = "program/lab_matrix.rs"]
mod lab_matrix;
#[path = "program/lab_over_tls.rs"]
mod lab_over_tls;
#[path = "program/lane.rs"]
mod lane;
#[path = "program/log_faults.rs"]
mod log_faults;
#[path = "program/lying_name_server.rs"]
mod lying_name_server;
#[path = "program/machine_checks.rs"]
mod machine_checks;
#[path = "program/manual_read.rs"]
mod manual_read;
#[path = "program/memc_module.rs"]
mod memc_module;
#[path = "program/memcached_faults.rs"]
mod memcached_faults;
#[path = "program/memory_limit.rs"]
mod memory_limit;
#[path = "program/mounted_larder.rs"]
mod mounted_larder;
#[path = "program/name_server_gone.rs"]
mod name_server_gone;
#[path = "program/nginx_beside.rs"]
mod nginx_beside;
#[path = "program/notation.rs"]
mod notation;
#[path = "program/origin_process.rs"]
mod origin_process;
#[path = "program/pebble.rs"]
mod pebble;
#[path = "program/peer_process.rs"]
mod peer_process;
#[path = "program/php_beside_nginx.rs"]
mod php_beside_nginx;
#[path = "program/played_http2.rs"]
mod played_http2;
#[path = "program/printed_vcl.rs"]
mod printed_vcl;
#[path = "program/process_checks.rs"]
mod process_checks;
#[path = "program/process_faults.rs"]
mod process_faults;
#[path = "program/prometheus_tools.rs"]
mod prometheus_tools;
#[path = "program/purged_by_order.rs"]
mod purged_by_order;
#[path = "program/purged_in_a_fleet.rs"]
mod purged_in_a_fleet;
#[path = "program/purged_under_program.rs"]
mod purged_under_program;
#[path = "program/purged_while_asked.rs"]
mod purged_while_asked;
#[path = "program/purging_larder.rs"]
mod purging_larder;
#[path = "program/raw_client.rs"]
mod raw_client;
#[path = "program/reading_along.rs"]
mod reading_along;
#[path = "program/recipes.rs"]
mod recipes;
#[path = "program/recording_origin.rs"]
mod recording_origin;
#[path = "program/refreshed_by_order.rs"]
mod refreshed_by_order;
#[path = "program/refused_calls.rs"]
mod refused_calls;
#[path = "program/reloaded_by_order.rs"]
mod reloaded_by_order;
#[path = "program/request_trailers.rs"]
mod request_trailers;
#[path = "program/running_config_told.rs"]
mod running_config_told;
#[path = "program/secure_site.rs"]
mod secure_site;
#[path = "program/service_notices.rs"]
mod service_notices;
#[path = "program/shared_tier.rs"]
mod shared_tier;
#[path = "program/site_folder.rs"]
mod site_folder;
#[path = "program/slow_and_many.rs"]
mod slow_and_many;
#[path = "program/static_faults.rs"]
mod static_faults;
#[path = "program/stillness.rs"]
mod stillness;
#[path = "program/strict_head.rs"]
mod strict_head;
#[path = "program/subject.rs"]
mod subject;
#[path = "program/supervised_larder.rs"]
mod supervised_larder;
#[path = "program/support_collected.rs"]
mod support_collected;
#[path = "program/taken_over.rs"]
mod taken_over;
#[path = "program/test_browser.rs"]
mod test_browser;
#[path = "program/tls_early_data.rs"]
mod tls_early_data;
#[path = "program/tls_faults.rs"]
mod tls_faults;
#[path = "program/tls_in_log.rs"]
mod tls_in_log;
#[path = "program/tls_knowledge.rs"]
mod tls_knowledge;
#[path = "program/tls_origins.rs"]
mod tls_origins;
#[path = "program/tls_serving.rs"]
mod tls_serving;
#[path = "program/tls_site.rs"]
mod tls_site;
#[path = "program/tls_stapling.rs"]
mod tls_stapling;
#[path = "program/told_in_a_fleet.rs"]
mod told_in_a_fleet;
#[path = "program/told_origin.rs"]
mod told_origin;
#[path = "program/traces_exported.rs"]
mod traces_exported;
#[path = "program/unit_file.rs"]
mod unit_file;
#[path = "program/vanished_origin.rs"]
mod vanished_origin;
#[path = "program/vcl_in_a_fleet.rs"]
mod vcl_in_a_fleet;
#[path = "program/vcl_operations.rs"]
mod vcl_operations;
#[path = "program/vcl_tools.rs"]
mod vcl_tools;
#[path = "program/wanted.rs"]
mod wanted;
