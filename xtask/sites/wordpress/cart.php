<?php
// A cart, by the cookies that WooCommerce has, and what a page shows of it.
add_action('init', function () {
    if (isset($_GET['add-to-cart'])) {
        setcookie('woocommerce_items_in_cart', '1', 0, '/');
        setcookie('wp_woocommerce_session_1', bin2hex(random_bytes(6)), 0, '/');
    }
});
add_action('wp_footer', function () {
    if (isset($_COOKIE['wp_woocommerce_session_1'])) {
        echo 'cart-of-' . esc_html($_COOKIE['wp_woocommerce_session_1']) . '.';
    }
});
