<?php
// Every page says for whom it was made, in a field and behind its last byte, and is counted.
file_put_contents(dirname(ABSPATH) . '/php-requests', '.', FILE_APPEND);
// Nobody comments so quickly; a play does.
add_filter('comment_flood_filter', '__return_false', 99);
ob_start(function ($page) {
    $user = did_action('set_current_user') ? wp_get_current_user() : null;
    $mark = 'asked-by-' . ($user && $user->exists() ? $user->user_login : 'nobody') . '.';
    if (!headers_sent()) {
        header("X-Asked-By: $mark");
    }
    return $page === '' ? '' : "$page\n<!-- $mark -->";
});
