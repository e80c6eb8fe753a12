import FKMiddleware
import Foundation

/// The options that aria2 1.37 allows after a URL of its input format, and the effect of those that are supported.
///
/// | option | effect |
/// | --- | --- |
/// | `referer`, `user-agent`, `http-no-cache` | header fields |
/// | `split`, `max-connection-per-server` | connections for the file: the smaller one |
/// | `max-download-limit` | rate limit of the file; `K` and `M` are powers of 1024 |
/// | `max-tries` | attempts; 0 is the maximum |
/// | `timeout`, `connect-timeout` | seconds for connecting and for silence: the larger one |
/// | `all-proxy`, `http-proxy`, `https-proxy` | the proxy for the scheme of the URL |
/// | `allow-overwrite`, `auto-file-renaming` | treatment of an existing file |
/// | `gid` | the attribute `gid`: 16 hexadecimal digits |
/// | `pause` | `true` creates the task suspended |
/// | `http-user`, `http-passwd` | Basic authentication, as aria2 sends it to every server of the file |
/// | `adopt` | the partial file that the task continues; aria2 does not have it |
/// | `no-netrc` | `false` reads user and password from `~/.netrc` |
package enum Aria2Options {
    /// The supported options. Others are listed in `Manifest.ignoredOptions`.
    package static let used: Set<String> = [
        "referer", "user-agent", "http-no-cache", "split", "max-connection-per-server", "max-download-limit",
        "max-tries",
        "timeout", "connect-timeout", "all-proxy", "http-proxy", "https-proxy", "allow-overwrite", "auto-file-renaming",
        "no-netrc", "gid", "pause", "http-user", "http-passwd", "adopt",
    ]

    /// `adopt` and all options of aria2 except `out`, `dir`, `checksum` and `header`.
    package static let known: Set<String> = used.union([
        "all-proxy-passwd", "all-proxy-user", "allow-piece-length-change", "always-resume", "async-dns",
        "bt-enable-hook-after-hash-check", "bt-enable-lpd", "bt-exclude-tracker", "bt-external-ip",
        "bt-force-encryption",
        "bt-hash-check-seed", "bt-load-saved-metadata", "bt-max-peers", "bt-metadata-only", "bt-min-crypto-level",
        "bt-prioritize-piece", "bt-remove-unselected-file", "bt-request-peer-speed-limit", "bt-require-crypto",
        "bt-save-metadata", "bt-seed-unverified", "bt-stop-timeout", "bt-tracker", "bt-tracker-connect-timeout",
        "bt-tracker-interval", "bt-tracker-timeout", "check-integrity", "conditional-get",
        "content-disposition-default-utf8", "continue", "dry-run", "enable-http-keep-alive", "enable-http-pipelining",
        "enable-mmap", "enable-peer-exchange", "file-allocation", "follow-metalink", "follow-torrent", "force-save",
        "ftp-passwd", "ftp-pasv", "ftp-proxy", "ftp-proxy-passwd", "ftp-proxy-user", "ftp-reuse-connection", "ftp-type",
        "ftp-user", "gid", "hash-check-only", "http-accept-gzip", "http-auth-challenge", "http-passwd",
        "http-proxy-passwd",
        "http-proxy-user", "http-user", "https-proxy-passwd", "https-proxy-user", "index-out", "lowest-speed-limit",
        "max-file-not-found", "max-mmap-limit", "max-resume-failure-tries", "max-upload-limit", "metalink-base-uri",
        "metalink-enable-unique-protocol", "metalink-language", "metalink-location", "metalink-os",
        "metalink-preferred-protocol", "metalink-version", "min-split-size", "no-file-allocation-limit",
        "no-proxy", "no-want-digest-header", "parameterized-uri", "pause", "pause-metadata", "piece-length",
        "proxy-method",
        "realtime-chunk-checksum", "remote-time", "remove-control-file", "retry-wait", "reuse-uri",
        "rpc-save-upload-metadata", "save-not-found", "seed-ratio", "seed-time", "select-file", "ssh-host-key-md",
        "stream-piece-selector", "uri-selector", "use-head",
    ])

    /// The fault in the value of a supported option; nil for a valid value.
    package static func fault(in name: String, _ value: String) -> String? {
        let isRight =
            switch name {
            case "split": number(value, 1...Int.max) != nil
            case "max-connection-per-server": number(value, 1...16) != nil
            case "max-tries": number(value, 0...Int.max) != nil
            case "timeout": number(value, 1...600) != nil
            case "connect-timeout": number(value, 1...600) != nil
            case "max-download-limit": rate(value) != nil
            case "http-no-cache", "allow-overwrite", "auto-file-renaming", "no-netrc", "pause":
                value == "true" || value == "false"
            case "all-proxy", "http-proxy", "https-proxy": value.isEmpty || (try? ProxyAddress(value)) != nil
            case "adopt": !value.isEmpty && !value.utf8.contains(0)
            case "gid": GID.number(value) != nil
            case "http-user":
                !value.contains(":") && !value.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7f }
            case "referer", "user-agent":
                !value.unicodeScalars.contains { ($0.value < 0x20 && $0 != "\t") || $0.value == 0x7f }
            default: true
            }
        // The URL of a proxy may contain a password.
        let shown =
            name.hasSuffix("-proxy") || name.hasSuffix("-passwd")
            ? "its value" : "'\(value.masked.visible)'"
        return isRight ? nil : "option '\(name)': \(shown) cannot be used; see aria2's manual for what it takes"
    }

    /// Why options cannot be used together with those of the task, as a clause; nil if they can. The logins of `~/.netrc` are the
    /// owner's: the proxy of a list or a client could read them.
    ///
    /// - Parameter task: the options of the task, with these applied.
    package static func fault(in options: [Manifest.Option], over task: TaskOptions) -> String? {
        let own = ["all-proxy", "http-proxy", "https-proxy"].compactMap { last($0, options) }.filter { !$0.isEmpty }
        let asks = last("no-netrc", options) == "false"
        guard task.netrc == true, let proxy = task.proxy, !proxy.isEmpty, asks || own.contains(proxy) else {
            return nil
        }
        return "~/.netrc and a proxy of its own exclude each other, because the proxy could read the login"
    }

    /// The header fields for options. `referer=*` is the URL itself.
    package static func headers(_ options: [Manifest.Option], url: String) -> [HeaderField] {
        var fields: [HeaderField] = []
        if let value = last("referer", options), !value.isEmpty {
            fields.append(HeaderField("Referer", value == "*" ? url : value))
        }
        if let value = last("user-agent", options) { fields.append(HeaderField("User-Agent", value)) }
        if last("http-no-cache", options) == "true" {
            fields += [HeaderField("Cache-Control", "no-cache"), HeaderField("Pragma", "no-cache")]
        }
        if let user = last("http-user", options) {
            let login = "\(user):\(last("http-passwd", options) ?? "")"
            fields.append(HeaderField("Authorization", "Basic \(Data(login.utf8).base64EncodedString())"))
        }
        return fields
    }

    /// Applies valid options to those of a task.
    package static func apply(_ options: [Manifest.Option], url: String, to task: inout TaskOptions) {
        let connections = ["split", "max-connection-per-server"].compactMap {
            last($0, options).flatMap { number($0, 1...Int.max) }
        }
        if let count = connections.min() { task.connections = .fixed(min(count, 256)) }
        if let limit = last("max-download-limit", options).flatMap(rate) { task.rateLimit = limit == 0 ? nil : limit }
        if let tries = last("max-tries", options).flatMap({ number($0, 0...Int.max) }) {
            task.maxAttempts = tries == 0 ? 1_001 : min(tries, 1_001)
        }
        let times = ["timeout", "connect-timeout"].compactMap { last($0, options).flatMap { number($0, 1...600) } }
        if let seconds = times.max() { task.timeoutSeconds = Double(seconds) }
        let scheme = url.lowercased().hasPrefix("https:") ? "https-proxy" : "http-proxy"
        if let proxy = last(scheme, options) ?? last("all-proxy", options) { task.proxy = proxy }
        if let value = last("no-netrc", options) { task.netrc = value == "false" }
        if last("allow-overwrite", options) == "true" {
            task.existing = .overwrite
        } else if let value = last("auto-file-renaming", options) {
            task.existing = value == "true" ? .rename : .refuse
        }
    }

    /// The options that set those of a task: the opposite of `apply`.
    ///
    /// - Returns: the options, and what aria2 has no option for. A proxy with a login is among that: a list is no place for secrets.
    package static func written(_ task: TaskOptions) -> (options: [Manifest.Option], rest: TaskOptions) {
        var options: [Manifest.Option] = []
        var rest = task
        if case .fixed(let count) = task.connections {
            options.append(Manifest.Option("split", "\(count)"))
            // aria2's own default is one connection to a server.
            if count <= 16 { options.append(Manifest.Option("max-connection-per-server", "\(count)")) }
        }
        if let rate = task.rateLimit { options.append(Manifest.Option("max-download-limit", "\(rate)")) }
        if let attempts = task.maxAttempts {
            options.append(Manifest.Option("max-tries", "\(attempts > 1_000 ? 0 : attempts)"))
        }
        if let seconds = task.timeoutSeconds, let whole = Int(exactly: seconds), (1...600).contains(whole) {
            options.append(Manifest.Option("timeout", "\(whole)"))
            rest.timeoutSeconds = nil
        }
        if let proxy = task.proxy, !proxy.contains("@"), fault(in: "all-proxy", proxy) == nil {
            options.append(Manifest.Option("all-proxy", proxy))
            rest.proxy = nil
        }
        if task.netrc == true { options.append(Manifest.Option("no-netrc", "false")) }
        switch task.existing {
        case .overwrite: options.append(Manifest.Option("allow-overwrite", "true"))
        case .rename: options.append(Manifest.Option("auto-file-renaming", "true"))
        case .refuse: options.append(Manifest.Option("auto-file-renaming", "false"))
        case .skip, nil: break
        }
        if task.existing != .skip { rest.existing = nil }
        (rest.connections, rest.rateLimit, rest.maxAttempts, rest.netrc) = (nil, nil, nil, nil)
        // Header fields and the digest have lines of their own; the others are facts, or say whose they are.
        (rest.headers, rest.secretHeaders, rest.listHeaders, rest.secretOrigin) = (nil, nil, nil, nil)
        (rest.checksum, rest.pieces, rest.size, rest.list, rest.entityTag) = (nil, nil, nil, nil, nil)
        rest.adoptPath = nil
        return (options, rest)
    }

    private static func last(_ name: String, _ options: [Manifest.Option]) -> String? {
        options.last { $0.name == name }?.value
    }

    private static func number(_ text: String, _ range: ClosedRange<Int>) -> Int? {
        guard text.utf8.allSatisfy(\.isASCIIDigit), let value = Int(text), range.contains(value) else { return nil }
        return value
    }

    /// The rate in bytes a second, with `K` and `M` as powers of 1024; nil for another text.
    package static func rate(_ text: String) -> Int64? {
        let unit: Int64 =
            switch text.utf8.last {
            case UInt8(ascii: "K"), UInt8(ascii: "k"): 1 << 10
            case UInt8(ascii: "M"), UInt8(ascii: "m"): 1 << 20
            default: 1
            }
        guard let count = number(unit == 1 ? text : String(text.dropLast()), 0...Int.max) else { return nil }
        let (bytes, isTooLarge) = Int64(count).multipliedReportingOverflow(by: unit)
        return isTooLarge ? nil : bytes
    }
}

extension TaskOptions {
    /// True if the options say how the file is fetched, with header fields, limits or the like, which lists of files do not.
    package var saysHow: Bool {
        let (written, rest) = Aria2Options.written(self)
        return headers?.isEmpty == false || !written.isEmpty || rest != TaskOptions()
    }
}
