
// What sites behind a cache say. Their pages live for hours; here nobody waits so long for one to expire.
$wgUseCdn = true;
$wgCdnServersNoPurge = ['127.0.0.1'];
$wgCdnMaxAge = 3;
