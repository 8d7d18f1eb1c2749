<?php
// The tables, and the first user.
$_SERVER['HTTP_HOST'] = 'site.test';
$_SERVER['REQUEST_METHOD'] = 'GET';
define('WP_INSTALLING', true);
require __DIR__ . '/docs/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter('pre_wp_mail', '__return_true');
wp_install('A site', 'ann', 'ann@site.test', true, '', 'ann-password');
