//! What `[policy]` says about a VCL and its parameters.

use super::{check, read};

#[test]
fn a_vcl_and_its_parameters_are_read() {
    let text = r#"
        [policy]
        vcl = "default.vcl"
        vcl_path = ["/etc/varnish", "more"]
        default_ttl = "1h"
        default_grace = 30
        max_retries = 2
        http_range_support = false
        clock_skew = 0.5
        timeout_idle = 5
        thread_pools = 2
        keep = "1h"
    "#;
    let plan = read(text).unwrap();
    let vcl = &plan.settings.vcl;
    assert_eq!((plan.vcl_file, plan.vcl_path.len()), (Some("default.vcl".into()), 2));
    assert_eq!((vcl.default_ttl.as_secs(), vcl.default_grace.as_secs(), vcl.max_retries), (3600, 30, 2));
    assert_eq!((vcl.http_range_support, vcl.clock_skew.as_millis()), (false, 500));
    assert_eq!((plan.settings.limits.idle_timeout.as_secs(), plan.settings.policy.keep.as_secs()), (5, 3600));
    assert_eq!(plan.warnings.len(), 1, "{:?}", plan.warnings);
}

#[test]
fn what_is_no_parameter_is_shown_where_it_stands() {
    check(
        r#"
[policy]
default_tll = 3600
max_restarts = "often"
"#,
        r#"
larder.toml:2:1: error: unknown key `default_tll` in [policy]
   |
 2 | default_tll = 3600
   | ^^^^^^^^^^^ no such key
   = help: did you mean `default_ttl`?
larder.toml:3:16: error: the value of `max_restarts` is wrong
   |
 3 | max_restarts = "often"
   |                ^^^^^^^ `often` must be a number from 0 to 4294967295
"#,
    );
}
