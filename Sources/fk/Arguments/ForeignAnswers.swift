/// What to write in place of an option of curl, wget or aria2. An answer follows a colon and has no full stop at its end.
enum ForeignAnswers {
    /// For an option of this name, whichever program has it.
    static let common: [String: String] = [
        // Files and names
        "output-document": name, "remote-name": fromURL, "remote-name-all": fromURL, "remote-header-name": fromURL,
        "content-disposition": fromURL, "trust-server-names": fromURL, "out": name,
        "directory-prefix": folder, "output-dir": folder, "dir": folder,
        "create-dirs": "folders are created", "force-directories": "fk has none: -d DIR names the folder",
        "ignore-existing": "--skip keeps an existing file",
        "no-clobber": "--skip keeps an existing file, and without it fk never replaces one",
        "allow-overwrite": "--overwrite replaces an existing file",
        "auto-file-renaming": "--rename takes the next free name",
        "max-filesize": "--max-size SIZE", "quota": "--max-size SIZE limits each file",
        "file-allocation": "a file grows as its bytes arrive",
        "no-file-allocation-limit": "a file grows as its bytes arrive",
        "continue": continues, "continue-at": continues, "always-resume": continues,
        "resume": continues,
        "start-pos": "fk cat --range N- URL writes a file from byte N on to standard output", "range": range,
        "input-file": "-i FILE (--input)", "force-html": none("lists are no web pages"), "base": "--base URL",
        "remote-time": "--remote-time",
        "no-use-server-timestamps": "a finished file has the time of its last byte",
        "timestamping": refresh, "time-cond": refresh, "conditional-get": refresh, "etag-compare": refresh,
        "etag-save": "the info file keeps the entity tag",
        "check-integrity": "fk verify reads finished files again",
        "hash-check-only": "fk verify reads finished files again",
        "metalink-file": "-i FILE reads a Metalink too", "follow-metalink": "--metalink", "metalink": "--metalink",
        "save-session": queue, "save-session-interval": queue, "auto-save-interval": queue, "force-save": queue,
        "pause": "fk barrel create stores files without starting them", "dry-run": none(nil), "spider": asks,
        "head": asks,

        // Speed
        "split": connections, "max-connection-per-server": connections,
        "min-split-size": "each connection has at least 1 MiB to fetch",
        "max-concurrent-downloads": jobs, "parallel": jobs, "parallel-max": jobs, "parallel-immediate": jobs,
        "optimize-concurrent-downloads": jobs, "force-sequential": jobs,
        "transfers": jobs, "checkers": jobs, "multi-thread-streams": connections,
        "bwlimit": rate, "max-download-limit": rate, "max-overall-download-limit": rate,
        "wait": spaced, "random-wait": spaced, "waitretry": delays, "retry-wait": delays, "retry-delay": delays,

        // Retries and time-outs
        "retries": retries, "low-level-retries": retries, "tries": retries, "max-tries": retries,
        "max-resume-failure-tries": retries,
        "retry-all-errors": transient, "retry-connrefused": transient, "retry-on-http-error": transient,
        "fail": "an error status is always a failure", "fail-with-body": "an error status is always a failure",
        "fail-early": none("the other files go on"), "retry-max-time": "--max-time S",
        "url": "addresses need no option: fk get URL",
        "connect-timeout": timeout, "contimeout": timeout, "read-timeout": timeout, "dns-timeout": timeout,
        "speed-time": timeout,
        "speed-limit": timeout, "lowest-speed-limit": timeout, "bt-stop-timeout": timeout,
        "stop": "--max-time S", "max-time": "--max-time S",

        // What is sent
        "user-agent": "--user-agent TEXT", "referer": "-H 'Referer: URL'", "http-user": login, "http-passwd": login,
        "http-password": login, "password": login, "ask-password": "--user NAME asks for the password", "user": login,
        "cookie": "--cookies FILE, or -H 'Cookie: NAME=VALUE'", "load-cookies": "--cookies FILE",
        "cookie-jar": none("--cookies FILE is read and never written"),
        "save-cookies": none("--cookies FILE is read and never written"), "keep-session-cookies": none(nil),
        "junk-session-cookies": none(nil), "oauth2-bearer": "-H 'Authorization: Bearer TOKEN'",
        "request": sends, "data": sends, "data-ascii": sends, "data-binary": sends, "data-raw": sends,
        "data-urlencode": sends,
        "form": sends, "form-string": sends, "json": sends, "upload-file": sends, "post-data": sends,
        "post-file": sends,
        "method": sends, "body-data": sends, "body-file": sends, "get": sends, "quote": none(nil), "append": sends,
        "ipv4": "-4 (--ipv4)", "ipv6": "-6 (--ipv6)", "inet4-only": "-4 (--ipv4)", "inet6-only": "-6 (--ipv6)",
        "disable-ipv6": "-4 (--ipv4)", "interface": "--interface NAME", "bind-address": "--interface ADDRESS",
        "resolve": "--resolve HOST:PORT:ADDRESS", "connect-to": "--resolve HOST:PORT:ADDRESS",
        "cert": "--cert FILE", "certificate": "--cert FILE", "key": "--key FILE", "private-key": "--key FILE",
        "compressed": encoded, "compression": encoded, "http-accept-gzip": encoded,
        "no-cache": "-H 'Cache-Control: no-cache'", "http-no-cache": "-H 'Cache-Control: no-cache'",

        // Connections
        "location": redirects, "location-trusted": none("secrets stay with their server"), "max-redirect": redirects,
        "max-redirs": redirects, "all-proxy": proxy, "http-proxy": proxy, "https-proxy": proxy, "proxy": proxy,
        "globoff": "always so: --glob expands",
        "socks5": proxy, "socks5-hostname": proxy, "socks4": proxy, "socks4a": proxy,
        "preproxy": none("--proxy URL is one proxy"),
        "proxy-user": "the login is part of --proxy http://NAME:PASSWORD@HOST:PORT",
        "proxy-password": "the login is part of --proxy http://NAME:PASSWORD@HOST:PORT",
        "noproxy": "the environment variable NO_PROXY",
        "no-proxy": "--proxy '' uses none; the environment variable NO_PROXY names hosts",
        "async-dns-server": "--dns-servers ADDRESS", "http2": "HTTP/2 is used where the server has it",
        "http3-only": "--http3", "no-check-certificate": insecure, "check-certificate": insecure, "insecure": insecure,
        "ca-certificate": "--cacert FILE", "ca-directory": "--cacert FILE names one file",
        "capath": "--cacert FILE names one file",
        "netrc-file": "--netrc reads ~/.netrc", "netrc-path": "--netrc reads ~/.netrc",
        "netrc": "--netrc", "no-netrc": "netrc is read only with --netrc", "netrc-optional": "--netrc",
        "https-only": "fk never goes from https to http",

        // Output
        "silent": quiet, "show-error": "errors are always shown", "no-verbose": quiet,
        "no-progress-meter": "--no-progress",
        "progress-bar": "progress is shown on a terminal", "progress": "progress is shown on a terminal",
        "show-progress": "progress is shown on a terminal", "verbose": "-v (--verbose)", "debug": "-v (--verbose)",
        "trace": "-v (--verbose)",
        "trace-ascii": log,
        "log": "--log FILE", "output-file": "--log FILE", "append-output": "--log FILE", "stderr": none(nil),
        "console-log-level": "--log-level LEVEL", "write-out": none("--json prints events, and --print path the files"),
        "server-response": log, "include": none(nil), "dump-header": none(nil), "save-headers": none(nil),
        "summary-interval": none(nil), "version": "fk --version", "manual": "fk man",

        // Running
        "daemon": detach, "background": detach, "config": config, "conf-path": config, "no-conf": config,
        "no-config": config,
        "execute": config, "disable": config, "enable-rpc": rpc, "rpc-listen-port": rpc, "rpc-secret": rpc,
        "rpc-listen-all": rpc,
        "rpc-allow-origin-all": rpc, "on-download-complete": program, "on-download-error": program,
        "on-download-start": program,
        "on-download-stop": program, "on-download-pause": program,

        // Folders of web servers
        "recursive": "fk get -r URL fetches a folder that its server lists",
        "level": "--depth N, with -r", "max-depth": "--depth N, with -r",
        "http-url": "fk get -r URL fetches a folder that its server lists", "accept": "--include GLOB, with -r",
        "reject": "--exclude GLOB, with -r",
        "include-directories": "--include 'DIR/*', with -r", "exclude-directories": "--exclude 'DIR/*', with -r",
        "mirror": mirrors, "no-parent": "-r never leaves the folder", "relative": "-r never leaves the folder",
        "span-hosts": none("-r never leaves the server"), "domains": none("-r never leaves the server"),
        "no-host-directories": "-r keeps the folders below the one that is named",
        "no-directories": keeps, "cut-dirs": keeps,
        "accept-regex": globs, "reject-regex": globs,
        "page-requisites": pages, "convert-links": pages, "delete-after": pages,
        "torrent-file": torrent, "seed-time": torrent, "seed-ratio": torrent, "listen-port": torrent,
        "select-file": torrent,
        "show-files": torrent, "index-out": torrent, "max-upload-limit": torrent,
    ]

    /// Where the option names standard output.
    static let cat = "fk cat URL writes to standard output"
    /// The same, behind fk cat.
    static let always = "fk cat always writes to standard output"

    /// For the option of a program that names a file, behind fk cat.
    static let ofCat: [String: String] = [
        "output": intoFile, "output-document": intoFile, "out": intoFile, "remote-name": intoFile,
        "remote-name-all": intoFile,
        "range": "--range A-B", "start-pos": "--range N-",
    ]

    /// For the option of aria2 that is about its RPC, behind fk rpc.
    static let ofRPC: [String: String] = [
        "enable-rpc": "always so", "rpc-secret": "--secret-file FILE takes the secret from a file",
        "rpc-listen-port": "--listen ADDRESS:PORT", "rpc-listen-all": "--listen ADDRESS:PORT",
        "rpc-allow-origin-all": "--allow-origin ORIGIN", "rpc-certificate": "--cert FILE",
        "rpc-private-key": "--key FILE", "rpc-secure": "--cert FILE and --key FILE",
        "save-session": "the queue is kept in the work path; clients name a file with changeGlobalOption",
    ]

    /// For the option of one program, where the name means something else there.
    static let special: [String: String] = [
        "aria2:timeout": timeout, "wget:timeout": timeout, "wget:mirror": mirrors,
        "curl:config": "-i FILE reads lists, and fk config set keeps options for every command",
        "curl:proxytunnel": "--proxy URL", "aria2:user-agent": "--user-agent TEXT",
    ]

    /// The answer for an option without one of its own.
    static func none(of long: String) -> String {
        if long.hasPrefix("bt-") || long.hasPrefix("dht-") || long.contains("torrent") { return torrent }
        if long.hasPrefix("ftp-") { return "fk has no FTP" }
        if long.hasPrefix("rpc-") { return rpc }
        return none(nil)
    }

    private static func none(_ reason: String?) -> String { reason.map { "fk has none: \($0)" } ?? "fk has none" }

    private static let name = "-o NAME sets the name; the name from the URL or the server is the default"
    private static let fromURL = "the name from the URL or the server is the default, and -o NAME sets another"
    private static let range = "fk cat --range A-B URL writes a part of a file to standard output"
    private static let intoFile = "fk get fetches into a file, and fk cat writes to standard output"
    private static let folder = "the folder is -d DIR (--directory)"
    private static let continues =
        "the same command continues what fk began, and --adopt FILE continues another program's partial file"
    private static let refresh = "fk barrel refresh asks for finished files again, and fetches those that have changed"
    private static let queue = "the queue is always on disk, and fk run continues it"
    private static let asks = "fk has none: curl -I asks for the head alone"
    private static let connections = "the connections for a file are -x N (--connections)"
    private static let jobs = "the number of files at once is -j N (--jobs)"
    private static let rate = "--limit-rate RATE"
    private static let spaced = "--rate N/m spaces the requests to a host"
    private static let delays = "the delays between attempts grow from one second"
    private static let retries = "--retry N is the number of attempts after the first"
    private static let transient = "transient errors are always tried again, and --retry N sets how often"
    private static let timeout = "--timeout S bounds connecting and any silence"
    private static let login = "--user NAME[:PASSWORD]"
    private static let sends = "fk sends no data: it fetches files with GET"
    private static let encoded = "always so for lists, and never for files: a file is kept as the server stores it"
    private static let redirects = "redirects are followed, 20 at most"
    private static let proxy = "--proxy URL takes http://, https://, socks4://, socks5:// and socks5h://"
    private static let insecure = "--insecure accepts any certificate"
    private static let quiet = "-q (--quiet)"
    private static let log = "--log FILE --log-level debug"
    private static let detach = "--detach"
    private static let config = "fk config set keeps options for every command"
    private static let rpc = "fk rpc"
    private static let program = "a middleware program: fk middleware add"
    private static let pages = "fk has none: it fetches files, and no web pages with their parts"
    private static let mirrors = "fk get -r URL makes a mirror, and fk barrel sync NAME updates it"
    private static let keeps = "fk has none: -r keeps the folders below the one that is named"
    private static let globs = "fk has none: --include and --exclude take globs"
    private static let torrent = "fk has no BitTorrent"
}
