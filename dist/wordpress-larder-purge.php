<?php
/**
 * Plugin Name: larder purge
 * Description: Tells larder, the HTTP accelerator in front of this site, whenever pages have changed, so that nobody gets the old ones.
 * Version: 1.0
 * Requires PHP: 7.2
 * License: see LICENSE of larder
 *
 * Put it into wp-content/mu-plugins (or wp-content/plugins, and activate it).
 *
 * A post is seen in many places: its own page, the front page, feeds, archives by date, category, tag and author, searches, and lists of recent
 * posts in the margin of any page. So every page of the site is told to larder as one of a cache group (RFC 9875), and what changes
 * empties the group, with one PURGE: no list of places is ever complete. Files, which are no pages, are purged by their URLs.
 *
 * larder is asked on this machine: at the port of the site's address where that is http://, and at 6081 where it is https://, which wants
 *     [[listen]]
 *     address = "127.0.0.1:6081"
 * in larder.toml. Elsewhere, say so in wp-config.php:
 *     define('LARDER_PURGE_AT', '192.0.2.1:6081');     // or 'unix:/run/larder/purge.sock'
 * (from another machine, purge_from of [policy] lets it), and behind WordPress's back, where clients know the site by another name:
 *     define('LARDER_PURGE_HOST', 'www.example.org');  // with :PORT unless that is 80 or 443
 */

defined('ABSPATH') || exit;

final class Larder_Purge {
    const SECONDS_MAX = 2;
    const PORT_BESIDE_TLS = 6081;
    const FAILURE = 'larder_purge_failure';

    /** Sites of this installation that have changed, each with the URLs that are purged beside its pages. */
    private static $changed = [];

    public static function begin() {
        add_filter('wp_headers', [self::class, 'with_group']);

        // A post that enters, changes in or leaves the state in which everybody reads it. A password, the trash and a date to come are such changes.
        add_action('pre_post_update', [self::class, 'before_post']);
        add_action('transition_post_status', [self::class, 'post'], 10, 3);
        add_action('before_delete_post', [self::class, 'before_post']);
        add_action('attachment_updated', [self::class, 'site']);
        add_action('add_attachment', [self::class, 'site']);
        add_action('delete_attachment', [self::class, 'attachment']);
        foreach (['added', 'updated', 'deleted'] as $done) {
            add_action("{$done}_post_meta", [self::class, 'meta'], 10, 3);
        }

        add_action('wp_insert_comment', [self::class, 'comment'], 10, 2);
        add_action('edit_comment', [self::class, 'comment_by_id']);
        add_action('transition_comment_status', [self::class, 'comment_status'], 10, 3);

        // What is on every page.
        $of_site = ['switch_theme', 'customize_save_after', 'wp_update_nav_menu', 'wp_delete_nav_menu', 'edited_term', 'delete_term', 'profile_update',
                    'deleted_user', 'activated_plugin', 'deactivated_plugin', 'upgrader_process_complete'];
        foreach (['sidebars_widgets', 'blogname', 'blogdescription', 'permalink_structure', 'show_on_front', 'page_on_front', 'page_for_posts',
                  'posts_per_page', 'sticky_posts', 'blog_public', 'site_icon'] as $option) {
            $of_site[] = "update_option_$option";
        }
        foreach ($of_site as $hook) {
            add_action($hook, [self::class, 'site'], 10, 0);
        }

        // When all is written, and before the answer is over: who has the answer sees the change.
        add_action('shutdown', [self::class, 'purge'], 0);
        add_action('admin_notices', [self::class, 'notice']);
    }

    /** Every page of the site is one of its group. */
    public static function with_group($headers) {
        $groups = isset($headers['Cache-Groups']) ? $headers['Cache-Groups'] . ', ' : '';
        $headers['Cache-Groups'] = $groups . self::group();
        return $headers;
    }

    public static function site() {
        self::$changed += [get_current_blog_id() => []];
    }

    /** Where a post was, should it be elsewhere or nowhere in a moment. */
    public static function before_post($id) {
        $post = get_post($id);
        if ($post && self::is_public($post->post_status) && !wp_is_post_revision($post)) {
            self::url(get_permalink($post));
        }
    }

    public static function post($new, $old, $post) {
        if (self::is_public($new) || self::is_public($old)) {
            self::site();
            if (self::is_public($new)) {
                self::url(get_permalink($post));
            }
        }
    }

    public static function attachment($id) {
        self::site();
        $file = wp_get_attachment_url($id);
        if (!$file) {
            return;
        }
        self::url($file);
        $about = wp_get_attachment_metadata($id);
        $names = is_array($about) && isset($about['sizes']) ? array_column($about['sizes'], 'file') : [];
        if (is_array($about) && isset($about['original_image'])) {
            $names[] = $about['original_image'];
        }
        foreach ($names as $name) {
            self::url(substr($file, 0, strrpos($file, '/') + 1) . $name);
        }
    }

    public static function meta($ids, $post, $key) {
        if ($key === '_thumbnail_id' || $key === '_wp_page_template') {
            self::site();
        }
    }

    public static function comment($id, $comment) {
        if ((string) $comment->comment_approved === '1') {
            self::site();
        }
    }

    public static function comment_by_id($id) {
        $comment = get_comment($id);
        if ($comment) {
            self::comment($id, $comment);
        }
    }

    public static function comment_status($new, $old, $comment) {
        if ($new === 'approved' || $old === 'approved') {
            self::site();
        }
    }

    /** One PURGE for all pages of each site that has changed, and one for each URL. */
    public static function purge() {
        $changed = self::$changed;
        self::$changed = [];
        foreach ($changed as $blog => $urls) {
            $home = get_home_url($blog, '/');
            $failure = self::ask($home, $home, ['Cache-Group-Invalidation: ' . self::group($blog)]);
            foreach (array_keys($urls) as $url) {
                $failure = $failure ?: self::ask($home, $url, []);
            }
            self::remember($failure);
        }
    }

    /** An error that nobody is told of is one that stays. */
    public static function notice() {
        $failure = current_user_can('manage_options') ? get_option(self::FAILURE) : '';
        if ($failure) {
            echo '<div class="notice notice-error"><p>' . esc_html($failure) . '</p></div>';
        }
    }

    private static function remember($failure) {
        if ($failure) {
            error_log($failure);
        }
        if (get_option(self::FAILURE, '') !== $failure) {
            update_option(self::FAILURE, $failure, true);
        }
    }

    private static function group($blog = null) {
        return '"wordpress-' . (int) ($blog ?: get_current_blog_id()) . '"';
    }

    private static function is_public($status) {
        $status = get_post_status_object($status);
        return $status && $status->public;
    }

    private static function url($url) {
        self::site();
        if ($url) {
            self::$changed[get_current_blog_id()][$url] = true;
        }
    }

    /** What went wrong, or nothing. */
    private static function ask($home, $url, $fields) {
        $home = wp_parse_url($home);
        $is_https = isset($home['scheme']) && $home['scheme'] === 'https';
        $port = isset($home['port']) ? ":{$home['port']}" : '';
        $host = defined('LARDER_PURGE_HOST') ? LARDER_PURGE_HOST : $home['host'] . $port;
        $usual = '127.0.0.1' . ($is_https ? ':' . self::PORT_BESIDE_TLS : ($port ?: ':80'));
        $at = defined('LARDER_PURGE_AT') ? LARDER_PURGE_AT : $usual;
        $to = strncmp($at, 'unix:', 5) === 0 ? 'unix://' . substr($at, 5) : "tcp://$at";

        $parts = wp_parse_url($url);
        $path = (isset($parts['path']) ? $parts['path'] : '/') . (isset($parts['query']) ? "?{$parts['query']}" : '');
        $about = "$host$path was not purged at larder, $at: ";
        $socket = @stream_socket_client($to, $number, $why, self::SECONDS_MAX);
        if (!$socket) {
            return "$about$why (LARDER_PURGE_AT in wp-config.php says where it listens)";
        }
        stream_set_timeout($socket, self::SECONDS_MAX);
        $head = array_merge(["PURGE $path HTTP/1.1", "Host: $host", 'Connection: close', 'Content-Length: 0'], $fields);
        fwrite($socket, implode("\r\n", $head) . "\r\n\r\n");
        $line = (string) fgets($socket, 1024);
        fclose($socket);
        if (preg_match('~^HTTP/1\.[01] 200\b~', $line)) {
            return '';
        }
        $status = trim($line) === '' ? 'no answer' : trim($line);
        $hint = strpos($line, ' 403') ? ' (purge_from of [policy] in larder.toml says who may)' : '';
        $hint = preg_match('~ 30[1278]~', $line) ? ' (a port that leads to https:// takes no purges: docs/sites.md)' : $hint;
        return "$about$status$hint";
    }
}

Larder_Purge::begin();
