import FKCore
import FKRPC
import Foundation

/// The command line of `fk-rpc`, as `fk rpc` writes it: names with values, all paths absolute.
struct ProgramWords {
    private var values: [String: [String]] = [:]
    private static let flags: Set<String> = ["no-secret", "plain", "json", "quiet"]
    private static let names: Set<String> = [
        "work-path", "base", "listen", "folder", "secret-file", "allow-origin", "cert", "key", "jobs", "connections",
        "limit-rate", "min-free", "parts-folder", "durability", "transport",
    ]

    /// - Throws: `ListenOptions.Fault`.
    init(_ words: [String]) throws {
        var rest = words[...]
        while let word = rest.popFirst() {
            let name = word.hasPrefix("--") ? String(word.dropFirst(2)) : ""
            if Self.flags.contains(name) {
                values[name] = []
            } else if Self.names.contains(name), let value = rest.popFirst() {
                values[name, default: []].append(value)
            } else {
                throw ListenOptions.Fault(message: "fk-rpc is started by fk: run 'fk rpc', and see 'fk help rpc'.")
            }
        }
        guard self["work-path"] != nil, !all("folder").isEmpty else {
            throw ListenOptions.Fault(message: "fk-rpc is started by fk: run 'fk rpc', and see 'fk help rpc'.")
        }
    }

    subscript(_ name: String) -> String? { values[name]?.last }
    func all(_ name: String) -> [String] { values[name] ?? [] }
    func has(_ name: String) -> Bool { values[name] != nil }

    var workPath: String { self["work-path"] ?? "" }

    /// - Throws: `ListenOptions.Fault`.
    func listenOptions() throws -> ListenOptions {
        try ListenOptions(
            listen: self["listen"] ?? ListenOptions.standard, secretFile: self["secret-file"],
            hasNoSecret: has("no-secret"), origins: all("allow-origin"), certificate: self["cert"], key: self["key"],
            isPlain: has("plain"))
    }

    var configure: Configure {
        var configure = Configure(workPath: URL(fileURLWithPath: workPath, isDirectory: true))
        for base in all("base").map({ $0.split(separator: "=", maxSplits: 1) }) where base.count == 2 {
            configure.bases[String(base[0])] = URL(fileURLWithPath: String(base[1]), isDirectory: true)
        }
        if let jobs = self["jobs"].flatMap({ Int($0) }) { configure.maxAction = jobs }
        if let text = self["connections"] {
            configure.connections = Int(text).map { .fixed($0) } ?? .automatic
        }
        if let rate = self["limit-rate"].flatMap({ Int64($0) }) { configure.rateLimit = rate > 0 ? rate : nil }
        if let bytes = self["min-free"].flatMap({ Int64($0) }) { configure.minFree = bytes }
        configure.partsFolder = self["parts-folder"].map { URL(fileURLWithPath: $0, isDirectory: true) }
        if let kind = self["durability"].flatMap({ Durability(rawValue: $0) }) { configure.durability = kind }
        if let kind = self["transport"].flatMap({ TransportKind(rawValue: $0) }) { configure.transportKind = kind }
        configure.runsMiddlewarePrograms = true
        return configure
    }
}
