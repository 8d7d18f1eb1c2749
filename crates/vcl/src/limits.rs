//! The bounds of what this crate will read. A text beyond one is refused with a message that names it.

/// Bytes of one file.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Files of one program, each inclusion counted.
pub const FILES_MAX: usize = 500;

/// How deep files may include one another.
pub const INCLUDE_DEPTH_MAX: usize = 16;

/// Tokens of one program, after inclusion.
pub const TOKENS_MAX: usize = 2_000_000;

/// How deep expressions may be nested: parentheses, arguments, signs.
pub const EXPRESSION_DEPTH_MAX: usize = 128;

/// How deep blocks may be nested.
pub const BLOCK_DEPTH_MAX: usize = 128;

/// Operators in a row within one expression, which become a tree of that depth or a list of that length.
pub const OPERANDS_MAX: usize = 4096;

/// Branches of one `if`.
pub const BRANCHES_MAX: usize = 4096;

/// How deep subroutines may call one another. Recursion is refused anyway.
pub const CALL_DEPTH_MAX: usize = 64;

/// Reports after which reading stops: a text with more mistakes than this is in another language.
pub const DIAGNOSTICS_MAX: usize = 200;

/// Bytes of one regular expression.
pub const REGEX_BYTES_MAX: usize = 64 << 10;

/// Bytes of the name of a header, as in Varnish: its length is one signed byte with the colon.
pub const HEADER_NAME_BYTES_MAX: usize = 126;

/// VCL's own limits on numbers: RFC 8941's digits.
pub const INTEGER_DIGITS_MAX: usize = 15;
/// Before the point.
pub const REAL_DIGITS_MAX: usize = 12;
/// After the point.
pub const FRACTION_DIGITS_MAX: usize = 3;

/// Probes remembered, as in Varnish: they are the bits of one word.
pub const PROBE_WINDOW_MAX: u32 = 64;

const _: () = assert!(INCLUDE_DEPTH_MAX < FILES_MAX);
const _: () = assert!(FILE_BYTES_MAX < u32::MAX as usize && FILES_MAX < u16::MAX as usize);

/// Bytes of text that the subroutines of one scope may make.
pub const SCOPE_BYTES_MAX: usize = 1 << 20;

/// Statements and function calls that one subroutine may run, those that it calls counted. There are no loops, but ten
/// subroutines that each call the next one ten times are 10^10 statements.
pub const STATEMENTS_MAX: u32 = 1_000_000;

/// How often PCRE2 may try within one match, where a regex needs PCRE2: Varnish's `pcre2_match_limit`.
pub const PCRE_MATCHES_MAX: u32 = 10_000;

/// How deep it may nest trying, where it does not compile to machine code: Varnish's `pcre2_depth_limit`.
pub const PCRE_DEPTH_MAX: u32 = 20;

/// Bytes that one set of regexes may keep for its automaton, for each thread that uses it.
pub const SET_CACHE_BYTES_MAX: usize = 4 << 20;

/// Bytes of an automaton that is made whole for a few regexes, and as many more while it is made. To find that one is larger
/// takes some milliseconds, and a program is to be loaded in fifty.
pub const WHOLE_AUTOMATON_BYTES_MAX: usize = 96 << 10;

/// Parts of its regexes.
pub const WHOLE_AUTOMATON_PARTS_MAX: usize = 200;

/// For so many sets of a program's regexes such an automaton is tried.
pub const WHOLE_AUTOMATA_MAX: u32 = 6;

/// Matches that one regsuball may replace.
pub const SUBSTITUTIONS_MAX: usize = 10_000;

/// How deep one expression may be nested once it is compiled.
pub const VALUE_DEPTH_MAX: u32 = 512;

/// How deep blocks and called subroutines together may be nested while they run.
pub const RUN_DEPTH_MAX: u32 = 512;

/// Steps of one std.fnmatch, each a byte looked at.
pub const WILDCARD_STEPS_MAX: usize = 4_000_000;

/// Files that std.fileread and std.blobread keep for one program, and bytes of each.
pub const READ_FILES_MAX: usize = 1000;
pub const READ_FILE_BYTES_MAX: usize = 1 << 20;

/// Cookies that vmod cookie keeps for one transaction, and bytes of all that were put in since it was emptied.
pub const COOKIES_MAX: usize = 1000;
pub const COOKIE_BYTES_MAX: usize = 256 << 10;

/// Variables that vmod var keeps for one transaction, and bytes of their names and texts.
pub const TASK_VARIABLES_MAX: usize = 1000;
pub const TASK_VARIABLE_BYTES_MAX: usize = 256 << 10;

/// Global variables of vmod var, and bytes of their names and texts.
pub const GLOBAL_VARIABLES_MAX: usize = 10_000;
pub const GLOBAL_VARIABLE_BYTES_MAX: usize = 16 << 20;

/// Backends of one director.
pub const DIRECTOR_BACKENDS_MAX: usize = 10_000;

/// How deep directors may stand behind one another.
pub const DIRECTOR_DEPTH_MAX: usize = 16;

/// Points on the circle of one shard director.
pub const SHARD_POINTS_MAX: u64 = 1_000_000;

/// Hashes that one saintmode object denies.
pub const SAINTMODE_ENTRIES_MAX: usize = 100_000;

/// Backends that vmod dynamic makes for one program.
pub const DYNAMIC_BACKENDS_MAX: usize = 1_024;

/// Bytes of a request's body that are read before vcl_recv because the program calls std.cache_req_body there.
pub const REQUEST_BODY_BYTES_MAX: u64 = 16 << 20;

/// The same where the call's size is known only when it is made, or where only vmod bodyaccess looks at the body.
pub const REQUEST_BODY_BYTES_DEFAULT: u64 = 1 << 20;
/// Keys that vmod vsthrottle counts at a time; past them those that were asked for least lately are forgotten.
pub const THROTTLE_BUCKETS_MAX: usize = 1 << 18;
