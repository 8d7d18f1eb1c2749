
// Every page says in a field and behind its last byte for whom it was made, and is counted.
if (PHP_SAPI !== 'cli') {
    file_put_contents(dirname(__DIR__) . '/php-requests', '.', FILE_APPEND);
}
ob_start(function ($page) {
    try {
        $user = RequestContext::getMain()->getUser();
        // What REST tells of a page is the same for everybody, and MediaWiki says max-age=5 of it to whoever asks.
        $mark = 'asked-by-' . ($user->isRegistered() && !defined('MW_REST_API') ? lcfirst($user->getName()) : 'nobody') . '.';
    } catch (Throwable $nobodys) {
        // Scripts and styles have no session.
        $mark = 'asked-by-nobody.';
    }
    if (!headers_sent()) {
        header("X-Asked-By: $mark");
        header_remove('Content-Length');
    }
    return $page === '' ? '' : "$page\n<!-- $mark -->";
});
$wgDisableOutputCompression = true;
$wgUseInstantCommons = false;
$wgJobRunRate = 0;
$wgEnableEmail = false;
$wgPhpCli = false;
$wgArticlePath = '/wiki/$1';
$wgUsePathInfo = true;
