<?php
// What plugins for page caches say: whoever has no session and left no comment may have a page of a moment ago.
// Plugins say minutes; here nobody waits so long for a page to expire.
add_filter('wp_headers', function ($headers) {
    $names = implode(' ', array_keys($_COOKIE));
    if (!is_user_logged_in() && !preg_match('/comment_author|wp-postpass|wordpress_logged_in/', $names)) {
        $headers['Cache-Control'] = 'max-age=3';
    }
    return $headers;
});
