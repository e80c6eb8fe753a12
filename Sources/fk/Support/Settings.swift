import FKCore
import FKMiddleware
import Foundation

/// The saved settings of a work path: options that need not be typed each time.
///
/// A small text file, `<work path>/config`, with one `key = value` per line in the order of `Key`. `#` starts a
/// comment line.
struct Settings: Sendable, Hashable {
    /// Each is the long name of an option.
    enum Key: String, Sendable, CaseIterable {
        case jobs
        case connections
        case limitRate = "limit-rate"
        case minFree = "min-free"
        case retry
        case timeout
        case durability
        case transport
        case directory
        case proxy
        case cacert

        /// True for a value that is saved as an absolute path.
        var isPath: Bool { self == .directory || self == .cacert }
    }

    private(set) var values: [Key: String] = [:]

    static func path(workPath: String) -> String { WorkPath(workPath).configPath }

    subscript(key: Key) -> String? {
        get { values[key] }
        set { values[key] = newValue }
    }

    /// Checks a value by the rules of its option.
    static func check(_ key: Key, _ value: String, _ arguments: ParsedArguments) throws {
        var trial = ParsedArguments(command: arguments.command)
        trial.append(value, to: key.rawValue)
        let name = key.rawValue
        switch key {
        case .jobs: _ = try trial.integer(name, name, in: 1...256)
        case .connections: _ = try trial.connections(name, name)
        case .limitRate: _ = try trial.rate(name, name)
        case .minFree: _ = try trial.size(name, name, atLeast: 0)
        case .retry: _ = try trial.integer(name, name, in: 0...1000)
        case .timeout: _ = try trial.seconds(name, name, in: 1...86_400)
        case .durability: _ = try trial.choice(name, name, of: Durability.self)
        case .transport: _ = try trial.choice(name, name, of: TransportKind.self)
        case .proxy: _ = try TaskInput.proxy(trial)
        case .directory, .cacert:
            guard !value.utf8.contains(where: { $0 < 0x20 }) else {
                throw arguments.error("\(name): control characters are not allowed.")
            }
            guard value.utf8.last != 0x20 else { throw arguments.error("\(name): the path ends in a blank.") }
        }
    }

    /// Adds the saved values of the command's options that were not given.
    ///
    /// - Throws: `UsageError` with the name of the file if it contains an invalid value.
    func fill(_ arguments: inout ParsedArguments, of spec: CommandSpec, workPath: String) throws {
        for key in Key.allCases where !arguments.has(key.rawValue) {
            guard let value = values[key], spec.options.contains(where: { $0.long == key.rawValue }) else { continue }
            do {
                try Self.check(key, value, arguments)
            } catch let error as UsageError {
                throw arguments.error("\(Self.path(workPath: workPath)): \(error.message)")
            }
            arguments.append(value, to: key.rawValue)
        }
    }

    /// Reads the file. A missing file means no settings. Lines that this version does not know are ignored.
    ///
    /// - Throws: `.workPathUnusable` if the file exists and cannot be read.
    static func read(workPath: String) throws -> Settings {
        let path = path(workPath: workPath)
        // Not `FileManager`, whose first use takes a tenth of a millisecond of every start.
        guard access(path, F_OK) == 0 else { return Settings() }
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw DownloadError(.workPathUnusable, "The settings cannot be read: \(path).", underlying: "\(error)")
        }
        return parse(text)
    }

    static func parse(_ text: String) -> Settings {
        var settings = Settings()
        // Works on bytes, because other spaces and line ends may be part of a folder's name.
        for line in text.utf8.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) where line.first != UInt8(ascii: "#")
        {
            let parts = line.split(separator: UInt8(ascii: "="), maxSplits: 1).map(Self.trimmed)
            if parts.count == 2, let key = Key(rawValue: parts[0]), !parts[1].isEmpty { settings[key] = parts[1] }
        }
        return settings
    }

    private static func trimmed(_ text: Substring.UTF8View) -> String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let start = text.firstIndex(where: { !isBlank($0) }), let end = text.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(Substring(text[start...end]))
    }

    var text: String {
        Key.allCases.compactMap { key in self[key].map { "\(key.rawValue) = \($0)\n" } }.joined()
    }

    /// Writes the file aside and renames it, so that a reader sees either the old or the new settings. A missing work
    /// path is created with mode 0700. The file has mode 0600.
    func write(workPath: String) throws {
        let path = Self.path(workPath: workPath)
        let aside = "\(path).\(UUID().uuidString)"
        do {
            try FileManager.default.createDirectory(
                atPath: workPath, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            guard
                FileManager.default.createFile(
                    atPath: aside, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
            else { throw CocoaError(.fileWriteNoPermission) }
            guard rename(aside, path) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        } catch {
            try? FileManager.default.removeItem(atPath: aside)
            throw DownloadError(.workPathUnusable, "The settings cannot be written: \(path).", underlying: "\(error)")
        }
    }
}
