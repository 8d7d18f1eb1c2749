//! Which directives of Apache's change nothing of who may read what. All others are understood where they are read, or close what they
//! are about.

use crate::import::apache_conf::name_of;
use crate::import::nginx_conf::Directive;

/// How Apache runs, logs and speaks.
const HARMLESS: &[&str] = &[
    "acceptfilter",
    "accessfilename",
    "adddefaultcharset",
    "addcharset",
    "addencoding",
    "addicon",
    "addiconbyencoding",
    "addiconbytype",
    "addlanguage",
    "allowencodedslashes",
    "browsermatch",
    "browsermatchnocase",
    "brotlicompressionquality",
    "bufferedlogs",
    "contentdigest",
    "coredumpdirectory",
    "customlog",
    "defaulticon",
    "defaultlanguage",
    "defaultruntimedir",
    "defaulttype",
    "deflatebuffersize",
    "deflatecompressionlevel",
    "deflatefilternote",
    "deflatememlevel",
    "deflatewindowsize",
    "enablemmap",
    "enablesendfile",
    "errordocument",
    "errorlog",
    "errorlogformat",
    "expiresactive",
    "expiresbytype",
    "expiresdefault",
    "extendedstatus",
    "fileetag",
    "forcelanguagepriority",
    "globallog",
    "gracefulshutdowntimeout",
    "group",
    "h2direct",
    "h2maxsessionstreams",
    "h2push",
    "h2windowsize",
    "hostnamelookups",
    "httpprotocoloptions",
    "indexignore",
    "indexoptions",
    "indexorderdefault",
    "keepalive",
    "keepalivetimeout",
    "languagepriority",
    "limitinternalrecursion",
    "limitrequestbody",
    "limitrequestfields",
    "limitrequestfieldsize",
    "limitrequestline",
    "listenbacklog",
    "logformat",
    "loglevel",
    "maxclients",
    "maxconnectionsperchild",
    "maxkeepaliverequests",
    "maxmemfree",
    "maxranges",
    "maxrequestsperchild",
    "maxrequestworkers",
    "maxspareservers",
    "maxsparethreads",
    "mimemagicfile",
    "minspareservers",
    "minsparethreads",
    "mutex",
    "namevirtualhost",
    "passenv",
    "pidfile",
    "protocols",
    "protocolshonororder",
    "proxyiobuffersize",
    "proxypassreverse",
    "proxypassreversecookiedomain",
    "proxypassreversecookiepath",
    "proxyreceivebuffersize",
    "proxystatus",
    "proxytimeout",
    "proxyvia",
    "readmename",
    "headername",
    "receivebuffersize",
    "removehandler",
    "removetype",
    "removecharset",
    "removeencoding",
    "removelanguage",
    "requestreadtimeout",
    "scoreboardfile",
    "seerequesttail",
    "sendbuffersize",
    "serveradmin",
    "serverlimit",
    "serversignature",
    "servertokens",
    "setenv",
    "setenvif",
    "setenvifnocase",
    "sslcertificatechainfile",
    "sslciphersuite",
    "sslcompression",
    "sslhonorcipherorder",
    "sslpassphrasedialog",
    "sslprotocol",
    "sslproxyengine",
    "sslrandomseed",
    "sslsessioncache",
    "sslsessioncachetimeout",
    "sslsessiontickets",
    "sslstaplingcache",
    "sslstaplingrespondertimeout",
    "sslstaplingreturnrespondererrors",
    "sslusestapling",
    "startservers",
    "threadlimit",
    "threadsperchild",
    "timeout",
    "traceenable",
];

/// More of them, whose words decide it.
const MAY_BE_HARMLESS: &[&str] = &[
    "addoutputfilterbytype",
    "addtype",
    "directoryslash",
    "options",
    "proxyrequests",
    "sslcacertificatefile",
    "sslcacertificatepath",
    "ssloptions",
    "sslproxyverify",
    "sslverifyclient",
    "sslverifydepth",
    "transferlog",
    "typesconfig",
];

/// Does it change nothing of who may read what?
pub fn is_harmless(directive: &Directive) -> bool {
    let (name, first) = (name_of(directive), directive.argument(0).to_ascii_lowercase());
    if name == "accessfilename" {
        return directive.arguments == [".htaccess"];
    }
    if HARMLESS.contains(&name.as_str()) || is_of_the_process(&name) {
        return true;
    }
    let words: Vec<String> = directive.arguments.iter().map(|word| word.to_ascii_lowercase()).collect();
    MAY_BE_HARMLESS.contains(&name.as_str())
        && match name.as_str() {
            "addoutputfilterbytype" => {
                matches!(first.as_str(), "deflate" | "brotli_compress" | "brotli_compress;deflate")
            }
            // Some types are handlers.
            "addtype" => !["x-httpd", "httpd/", "cgi", "server-parsed", "php", "x-type-map"]
                .iter()
                .any(|word| first.contains(word)),
            "directoryslash" => first == "on",
            // Which of links and listings is another thing.
            "options" => {
                let known = ["-indexes", "-multiviews", "+multiviews", "-execcgi", "-includes"];
                !words.is_empty() && words.iter().all(|word| known.contains(&word.as_str()))
            }
            "proxyrequests" => first == "off",
            "ssloptions" => {
                let known = ["stdenvvars", "exportcertdata", "optrenegotiate"];
                words.iter().all(|word| known.contains(&word.trim_start_matches(['+', '-'])))
            }
            "sslproxyverify" | "sslverifyclient" => first == "none",
            _ => true,
        }
}

fn is_of_the_process(name: &str) -> bool {
    matches!(name, "user" | "usecanonicalname" | "usecanonicalphysicalport" | "unsetenv")
}
