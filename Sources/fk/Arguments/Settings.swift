import FKCore
import FKManifests
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
        case diskBudget = "disk-budget"
        case retry
        case timeout
        case durability
        case transport
        case directory
        case partsFolder = "parts-folder"
        case proxy
        case cacert

        /// The default, in words where it is no value of the option.
        var usual: String {
            switch self {
            case .jobs: "3"
            case .connections: "auto"
            case .limitRate: "no limit"
            case .minFree: "64M"
            case .diskBudget: ParsedArguments.noBudget
            case .retry: "4"
            case .timeout: "30 s to connect, 60 s of silence"
            case .durability: Durability.process.rawValue
            case .transport: TransportKind.automatic.rawValue
            case .directory: "the current folder"
            case .partsFolder: "beside the finished file"
            case .proxy: "that of the environment"
            case .cacert: "the authorities of the system"
            }
        }

        /// True for a value that is saved as an absolute path.
        var isPath: Bool { [.directory, .partsFolder, .cacert].contains(self) }
    }

    private(set) var values: [Key: String] = [:]
    /// The folders of bases (`Configure.bases`), each a line `base.NAME = FOLDER`.
    var bases: [String: String] = [:]

    /// What the name of a base's line begins with.
    static let basePrefix = "base."

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
        case .diskBudget: _ = try trial.diskBudget()
        case .retry: _ = try trial.integer(name, name, in: 0...1000)
        case .timeout: _ = try trial.seconds(name, name, in: 1...86_400)
        case .durability: _ = try trial.choice(name, name, of: Durability.self)
        case .transport: _ = try trial.choice(name, name, of: TransportKind.self)
        case .proxy: _ = try trial.proxy()
        case .directory, .partsFolder, .cacert:
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
        do {
            let bytes = try FileIO.contents(of: path, limit: maxSize)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw DownloadError(.workPathUnusable, "\(path) is not UTF-8 text.")
            }
            return parse(text)
        } catch let error as DownloadError where error.code == .notFound {
            return Settings()
        } catch {
            throw unusable("read", path, error)
        }
    }

    static func parse(_ text: String) -> Settings {
        var settings = Settings()
        // Works on bytes, because other spaces and line ends may be part of a folder's name.
        for line in text.utf8.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) where line.first != UInt8(ascii: "#")
        {
            let parts = line.split(separator: UInt8(ascii: "="), maxSplits: 1).map {
                String(Substring($0)).trimmingBlanks
            }
            guard parts.count == 2, !parts[1].isEmpty else { continue }
            if let key = Key(rawValue: parts[0]) {
                settings[key] = parts[1]
            } else if let name = baseName(parts[0]), Places.fault(name, parts[1]) == nil {
                settings.bases[name] = parts[1]
            }
        }
        return settings
    }

    /// The name in the key of a base's line; nil for any other key.
    static func baseName(_ key: String) -> String? {
        key.hasPrefix(basePrefix) ? String(key.dropFirst(basePrefix.count)) : nil
    }

    var text: String {
        Key.allCases.compactMap { key in self[key].map { "\(key.rawValue) = \($0)\n" } }.joined()
            + bases.sorted { $0.key < $1.key }.map { "\(Self.basePrefix)\($0) = \($1)\n" }.joined()
    }

    /// Changes the settings of a work path. No other process changes them meanwhile, so that no setting is lost. A missing work
    /// path is created with mode 0700.
    ///
    /// - Returns: the new settings.
    /// - Throws: `.workPathUnusable` if the file cannot be read or written; `.workPathBusy` if another process does not end its own
    ///   change.
    static func change(workPath: String, _ change: (inout Settings) -> Void) throws -> Settings {
        do {
            try WorkPath(workPath).makeRoot()
        } catch {
            throw unusable("written", path(workPath: workPath), error)
        }
        return try FileLock.exclusively(WorkPath(workPath).settingsLockPath) {
            var settings = try read(workPath: workPath)
            change(&settings)
            try settings.write(workPath: workPath)
            return settings
        }
    }

    /// Writes the file aside and renames it, so that a reader sees either the old or the new settings. The file has mode 0600.
    func write(workPath: String) throws {
        let path = Self.path(workPath: workPath)
        let aside = "\(path).\(UUID().uuidString)"
        do {
            try Array(text.utf8).withUnsafeBytes { bytes in
                try FileIO.replace(path, aside: aside, bytes) { try FileIO.synchronize(aside) }
            }
        } catch {
            throw Self.unusable("written", path, error)
        }
    }

    private static let maxSize = 1 << 20

    private static func unusable(_ action: String, _ path: String, _ error: any Error) -> DownloadError {
        DownloadError(
            .workPathUnusable, "The settings cannot be \(action): \(path).",
            underlying: (error as? DownloadError)?.message ?? "\(error)")
    }
}
