import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The saved settings of a work path: options that need not be typed each time.
///
/// A small text file, `<work path>/config`, with one `key = value` per line in the order of `SavedOption.all`. `#` starts a
/// comment line.
struct Settings: Sendable, Hashable {
    /// The values by the names of their options.
    private var values: [String: String] = [:]
    /// The folders of bases (`Configure.bases`), each a line `base.NAME = FOLDER`.
    var bases: [String: String] = [:]

    /// The lines that this version does not understand. They stay in the file.
    private(set) var ignored: [IgnoredLine] = []

    /// A line of the file that has no effect.
    struct IgnoredLine: Sendable, Hashable {
        /// From 1.
        var number: Int
        var text: String
        /// Completes a sentence about the line.
        var reason: String
    }

    /// What the name of a base's line begins with.
    static let basePrefix = "base."

    static func path(workPath: String) -> String { WorkPath(workPath).configPath }

    subscript(name: String) -> String? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// Adds the saved values of the command's options that were not given.
    ///
    /// - Parameter home: the folder of a leading `~/` in paths; nil, the default, leaves it.
    /// - Throws: `CommandFailure` with the name of the file if it contains an invalid value.
    func fill(
        _ arguments: inout ParsedArguments, of spec: CommandSpec, workPath: String, home: String? = nil
    ) throws {
        for option in SavedOption.all where !arguments.has(option.name) {
            guard let value = values[option.name], spec.options.contains(where: { $0.long == option.name }) else {
                continue
            }
            do {
                try option.check(value, arguments)
            } catch let error as UsageError {
                throw Self.fault(error.message, workPath: workPath)
            }
            arguments.fill(option.isPath ? Paths.expanded(value, home) : value, for: option.name)
        }
    }

    /// The error about a value of the file, whose key begins the message.
    static func fault(_ message: String, workPath: String) -> CommandFailure {
        CommandFailure("\(path(workPath: workPath)): \(message)", status: ExitStatus.usage)
    }

    /// Warns of the lines that have no effect: a mistake, or a setting of a later version. Their values may be secrets.
    func warn(_ context: CommandContext, workPath: String) {
        for line in ignored {
            context.warn("\(Self.path(workPath: workPath)), line \(line.number), has no effect: \(line.reason).")
        }
    }

    /// Reads the file. A missing file means no settings. Lines that this version does not know are ignored (`warn`).
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
        } catch let error as DownloadError where error.code == .notFound || access(workPath, X_OK) != 0 {
            // The work path itself cannot be used, which its check says.
            return Settings()
        } catch {
            throw unusable("read", path, error)
        }
    }

    static func parse(_ text: String) -> Settings {
        var settings = Settings()
        // Works on bytes, because other spaces and line ends may be part of a folder's name.
        let lines = text.utf8.split(separator: 0x0a, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            for line in line.split(separator: 0x0d) {
                let text = String(Substring(line)).trimmingBlanks
                guard !text.isEmpty, text.utf8.first != UInt8(ascii: "#"), let reason = settings.add(line) else {
                    continue
                }
                settings.ignored.append(IgnoredLine(number: index + 1, text: text, reason: reason))
            }
        }
        return settings
    }

    /// Adds a line's setting. Returns why it has no effect; nil if it has.
    private mutating func add(_ line: Substring.UTF8View) -> String? {
        let parts = line.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false).map {
            String(Substring($0)).trimmingBlanks
        }
        let key = parts[0]
        guard parts.count == 2 else { return "it has no '=', as in 'limit-rate = 100K'" }
        guard !parts[1].isEmpty else { return "it has no value" }
        if let name = Self.baseName(key) {
            if let fault = Places.fault(name, parts[1]) { return fault }
            bases[name] = parts[1]
        } else if let option = SavedOption.named(key) {
            values[option.name] = parts[1]
        } else {
            let guess = Suggestion.nearest(to: key.lowercased(), among: SavedOption.all.map(\.name))
            return "'\(key.visible)' is no setting of this version" + (guess.map { " (did you mean '\($0)'?)" } ?? "")
        }
        return nil
    }

    /// The name in the key of a base's line; nil for any other key.
    static func baseName(_ key: String) -> String? {
        key.hasPrefix(basePrefix) ? String(key.dropFirst(basePrefix.count)) : nil
    }

    var text: String {
        SavedOption.all.compactMap { option in self[option.name].map { "\(option.name) = \($0)\n" } }.joined()
            + bases.sorted { $0.key < $1.key }.map { "\(Self.basePrefix)\($0) = \($1)\n" }.joined()
            + ignored.map { $0.text + "\n" }.joined()
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
        do {
            return try WorkPath(workPath).withSettingsLock {
                var settings = try read(workPath: workPath)
                change(&settings)
                try settings.write(workPath: workPath)
                return settings
            }
        } catch let error as DownloadError where error.code == .workPathUnusable || error.code == .workPathBusy {
            throw error
        } catch {
            // The lock file cannot be made or locked.
            throw unusable("written", path(workPath: workPath), error)
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
