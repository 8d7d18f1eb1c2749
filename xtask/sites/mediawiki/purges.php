
// A wiki whose pages live for five hours, and that tells larder which of them have changed.
$wgUseCdn = true;
$wgCdnMaxAge = 18000;
$wgCdnServers = ['127.0.0.1:PORT'];
$wgCdnServersNoPurge = ['127.0.0.1'];
$wgInternalServer = 'http://site.test';
