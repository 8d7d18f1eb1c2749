<?php
// Two users with what is theirs, and pages for everybody. Prints what the judge must know, a line each: NAME VALUE.
$_SERVER['HTTP_HOST'] = 'site.test';
$_SERVER['REQUEST_METHOD'] = 'GET';
require __DIR__ . '/docs/wp-load.php';
add_filter('pre_wp_mail', '__return_true');
$ann = get_user_by('login', 'ann')->ID;
$ben = wp_insert_user(['user_login' => 'ben', 'user_pass' => 'ben-password', 'user_email' => 'ben@site.test', 'role' => 'author']);
$write = function ($name, $author, $more = []) {
    $usual = ['post_title' => $name, 'post_name' => $name, 'post_content' => "The words of $name.", 'post_status' => 'publish',
              'post_author' => $author, 'post_type' => 'post', 'comment_status' => 'open'];
    $id = wp_insert_post(array_merge($usual, $more), true);
    echo "$name $id\n";
};
foreach (['one', 'two', 'three', 'four'] as $at => $name) {
    $write($name, $at % 2 ? $ann : $ben);
}
$write('about', $ann, ['post_type' => 'page']);
foreach (['ann' => $ann, 'ben' => $ben] as $name => $id) {
    $write("private-$name", $id, ['post_status' => 'private', 'post_content' => "private-of-$name."]);
    $write("draft-$name", $id, ['post_status' => 'draft', 'post_content' => "draft-of-$name."]);
    echo "password-$name " . WP_Application_Passwords::create_new_application_password($id, ['name' => 'judge'])[0] . "\n";
}
$write('locked', $ann, ['post_password' => 'open-sesame', 'post_content' => 'behind-the-password.']);
switch_theme('twentytwentyone');
update_option('comment_moderation', 1);
update_option('comment_previously_approved', 0);
update_option('permalink_structure', '/%postname%/');
global $wp_rewrite;
$wp_rewrite->init();
$wp_rewrite->set_permalink_structure('/%postname%/');
flush_rewrite_rules(false);
