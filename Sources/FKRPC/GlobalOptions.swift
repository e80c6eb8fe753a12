import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// aria2's global options: the values that this program starts with, and those that clients have set since. They apply to
/// tasks that are added later, until the process ends.
struct GlobalOptions: Sendable {
    /// The options that aria2 has and that are shown, with aria2's values or those that describe this program.
    static let defaults: [String: String] = [
        "allow-overwrite": "false", "allow-piece-length-change": "false", "always-resume": "true",
        "async-dns": "true", "auto-file-renaming": "true", "auto-save-interval": "1", "check-certificate": "true",
        "check-integrity": "false", "conditional-get": "false", "connect-timeout": "60",
        "console-log-level": "notice", "content-disposition-default-utf8": "true", "continue": "true",
        "daemon": "false", "deferred-input": "false", "disable-ipv6": "false", "disk-cache": "0",
        "download-result": "default", "dry-run": "false", "enable-color": "true", "enable-http-keep-alive": "true",
        "enable-http-pipelining": "false", "enable-mmap": "false", "enable-rpc": "true",
        "file-allocation": "none", "follow-metalink": "true", "follow-torrent": "false", "force-save": "false",
        "hash-check-only": "false", "http-accept-gzip": "false", "http-auth-challenge": "false",
        "http-no-cache": "false", "human-readable": "true", "keep-unfinished-download-result": "true",
        "log-level": "info", "lowest-speed-limit": "0", "max-concurrent-downloads": "3",
        "max-connection-per-server": "16", "max-download-limit": "0", "max-download-result": "0",
        "max-file-not-found": "0", "max-overall-download-limit": "0", "max-overall-upload-limit": "0",
        "max-resume-failure-tries": "0", "max-tries": "5", "max-upload-limit": "0", "min-split-size": "1048576",
        "no-file-allocation-limit": "5242880", "no-netrc": "true", "optimize-concurrent-downloads": "false",
        "parameterized-uri": "false", "pause-metadata": "false", "piece-length": "1048576", "proxy-method": "get",
        "quiet": "true", "realtime-chunk-checksum": "true", "remote-time": "false",
        "remove-control-file": "false", "retry-wait": "0", "reuse-uri": "true", "rpc-allow-origin-all": "false",
        "rpc-listen-all": "false", "rpc-max-request-size": "2097152", "rpc-save-upload-metadata": "false",
        "rpc-secure": "false", "save-not-found": "true", "save-session-interval": "0", "seed-ratio": "0.0",
        "server-stat-timeout": "86400", "show-console-readout": "false", "split": "16", "stderr": "false",
        "stop": "0", "stream-piece-selector": "default", "summary-interval": "0", "timeout": "60",
        "uri-selector": "inorder", "use-head": "false", "user-agent": "fk/\(FKCore.Version.text)",
    ]

    /// The options of a single task among `defaults`.
    static let ofProgram: Set<String> = [
        "auto-save-interval", "console-log-level", "daemon", "deferred-input", "disk-cache", "download-result",
        "enable-color", "enable-rpc", "human-readable", "log-level", "max-concurrent-downloads", "max-download-result",
        "max-overall-download-limit", "max-overall-upload-limit", "optimize-concurrent-downloads", "quiet",
        "rpc-allow-origin-all", "rpc-listen-all", "rpc-max-request-size", "rpc-secure", "save-session-interval",
        "server-stat-timeout", "show-console-readout", "stderr", "stop", "summary-interval",
    ]

    /// Names that act on later tasks when a client sets them.
    private static let ofTask = Aria2Options.used.subtracting(["gid", "pause", "adopt"]).union([
        "header", "http-user", "http-passwd", "dir",
    ])

    /// The values that were set: by the command line first, then by clients.
    private(set) var values: [String: [String]]

    init(_ settings: RPCSettings) {
        values = settings.options.mapValues { [$0] }
    }

    subscript(_ name: String) -> String? { values[name]?.last }

    /// Stores values of options that exist; others are ignored.
    mutating func set(_ name: String, _ texts: [String]) {
        guard Self.defaults[name] != nil || Self.ofTask.contains(name) || name == "save-session" else { return }
        values[name] = texts
    }

    /// The options of a call, completed by those that were set for all tasks.
    func completing(_ given: CallOptions) -> CallOptions {
        given.completed(by: values.filter { Self.ofTask.contains($0.key) })
    }

    /// All options as clients see them.
    func shown(dir: String) -> [String: String] {
        var shown = Self.defaults
        shown["dir"] = dir
        for (name, texts) in values where !Self.isSecret(name) { shown[name] = Self.shown(name, texts) }
        return shown
    }

    /// True for options that are not shown.
    private static func isSecret(_ name: String) -> Bool { name == "rpc-secret" || name.hasSuffix("-passwd") }

    /// A value without secrets: addresses are masked, and secret header fields are left out.
    private static func shown(_ name: String, _ texts: [String]) -> String? {
        switch name {
        case "header":
            let lines = texts.flatMap { $0.split(whereSeparator: \.isNewline) }.filter { line in
                !hides(header: line.prefix { $0 != ":" }.trimmingCharacters(in: .whitespaces))
            }
            return lines.isEmpty ? nil : lines.joined(separator: "\n")
        case "referer", "all-proxy", "http-proxy", "https-proxy": return texts.last.map(\.masked)
        // aria2 shows sizes and rates in bytes.
        case _ where Int64(defaults[name] ?? "") != nil:
            return texts.last.map { text in (try? Int64(byteSize: text)).map(String.init) ?? text }
        default: return texts.last
        }
    }

    /// True for a header field that is not shown.
    static func hides(header name: String) -> Bool {
        HeaderField.alwaysSecret.contains(name.lowercased()) || name.isSecretName
    }
}

extension CallOptions {
    fileprivate func completed(by defaults: [String: [String]]) -> CallOptions {
        var result = self
        result.merge(defaults)
        return result
    }
}
