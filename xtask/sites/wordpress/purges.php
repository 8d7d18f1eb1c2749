<?php
// What plugins for caches do: whenever a post or a comment changes, the pages that show it are purged at larder, one PURGE for each.
function purge_pages_of($id) {
    $post = get_post($id);
    if (!$post || $post->post_status !== 'publish' || wp_is_post_revision($post)) {
        return;
    }
    $pages = [home_url('/'), get_permalink($post), get_feed_link(), get_feed_link('comments_rss2'), get_author_posts_url($post->post_author)];
    foreach ($pages as $page) {
        $said = wp_remote_request('http://127.0.0.1:PORT' . wp_make_link_relative($page), [
            'method' => 'PURGE',
            'headers' => ['Host' => 'site.test'],
        ]);
        if (wp_remote_retrieve_response_code($said) !== 200) {
            error_log("$page was not purged: " . print_r($said, true));
        }
    }
}
add_action('save_post', 'purge_pages_of');
add_action('comment_post', function ($id) {
    purge_pages_of(get_comment($id)->comment_post_ID);
});
add_action('transition_comment_status', function ($new, $old, $comment) {
    purge_pages_of($comment->comment_post_ID);
}, 10, 3);
