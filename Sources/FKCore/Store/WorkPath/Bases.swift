import FKMiddleware
import Foundation

/// The bases of a work path and of its shards: the folders that places in their records are relative to (`Places`).
///
/// They are the work path itself, the folders that the application names, and on Apple's systems home, documents and caches. The
/// file `bases` has the roots with which an engine last opened the work path, for readers that do not know the application's,
/// and the first root of each, which ids of tasks are computed with:
///
/// ```text
/// {"bases":[{"first":"/data/dl","name":"dl","root":"/mnt/dl"}],"format":1}
/// ```
package final class Bases: Sendable {
    /// A base as the file has it. Without a root, the last engine did not know the base.
    private struct Entry: Codable, Hashable {
        var name: String
        var first: String
        var root: String?
    }

    private struct File: Codable {
        var format: Int
        var bases: [Entry]
    }

    private struct State {
        var entries: [Entry]?
        /// By the root of the work path or shard.
        var places = ExactText.Map<Places>()
    }

    /// The outer work path of a shard, else the work path.
    private let root: String
    private let given: [String: String]
    private let state = Locked(State())

    private static let fileName = "bases"
    private static let maxSize = 1 << 20
    private static let format = 1

    /// Names the bases of a work path. It reads no file yet.
    ///
    /// - Parameter given: paths by names. Impossible ones are left out; `Configure.validate` refuses them.
    init(_ root: String, _ given: [String: String]) {
        self.root = root
        self.given = Self.ofSystem.merging(given) { $1 }.filter { Places.fault($0.key, $0.value) == nil }
    }

    /// The folders of the system that move with an application.
    private static let ofSystem: [String: String] = {
        #if canImport(Darwin)
            let files = FileManager.default
            let folders: [(String, FileManager.SearchPathDirectory)] = [
                ("documents", .documentDirectory), ("caches", .cachesDirectory),
            ]
            var found = ["home": NSHomeDirectory()]
            for (name, folder) in folders { found[name] = files.urls(for: folder, in: .userDomainMask).first?.path }
            return found
        #else
            return [:]
        #endif
    }()

    /// The stored form of places in the work path or in one of its shards.
    func places(of workPath: String) -> Places {
        state.withLock { state in
            if let known = state.places[workPath] { return known }
            // Without a readable file, a reader knows the bases of its own process. The engine refuses to open.
            let entries = state.entries ?? (try? read()) ?? []
            state.entries = entries
            let places = places(entries, of: workPath)
            state.places[workPath] = places
            return places
        }
    }

    /// Reads the file again: an engine may have written it meanwhile.
    ///
    /// - Returns: true if it has changed.
    func reload() -> Bool {
        guard let entries = try? read() else { return false }
        return state.withLock { state in
            guard entries != state.entries else { return false }
            state = State(entries: entries)
            return true
        }
    }

    private func places(_ entries: [Entry], of workPath: String) -> Places {
        var roots: [String: String] = [:]
        for entry in entries { roots[entry.name] = entry.root }
        roots.merge(given) { $1 }
        roots[Places.work] = workPath
        var firsts: [String: String] = [:]
        for entry in entries { firsts[entry.name] = entry.first }
        // A shard has moved with its work path.
        firsts[Places.work] = firsts[Places.work].flatMap { first in
            Places.remainder(of: workPath, in: root).map { $0.isEmpty ? first : "\(first)/\($0)" }
        }
        let known = Places(
            roots.compactMap { name, root in firsts[name].map { .init(name: name, root: root, first: $0) } })
        return Places(
            roots.map { name, root in
                .init(name: name, root: root, first: firsts[name] ?? known.former(root) ?? root)
            })
    }

    // MARK: The file

    private var path: String { "\(root)/\(Self.fileName)" }

    private func read() throws -> [Entry] {
        let file: File
        do {
            file = try StoreJSON.decode(File.self, from: try FileIO.contents(of: path, limit: Self.maxSize))
        } catch let error as DownloadError where error.code == .notFound {
            return []
        } catch let error as DownloadError where error.code == .corruptInfo {
            throw DownloadError(
                .workPathUnusable,
                "\(path) cannot be understood. Restore it; without it, bases that have moved are new ones.")
        }
        guard file.format == Self.format else {
            throw DownloadError(.laterVersion, "\(path) has format \(file.format); this program knows \(Self.format).")
        }
        return file.bases.filter {
            $0.first.utf8.first == UInt8(ascii: "/") || $0.first.utf8.first == UInt8(ascii: ":")
        }
    }

    /// Writes the present bases for readers and for later engines. Only for the process that owns the engine.
    ///
    /// - Parameter noteWorkPath: true if the records are of a version that has absolute places alone: they are in the work path
    ///   wherever it is later.
    /// - Throws: `.workPathUnusable` or `.laterVersion` if the file cannot be understood; `.noSpace` or `.disk`.
    func record(noteWorkPath: Bool) throws {
        let old = try read()
        let places = places(old, of: root)
        var entries = old.map { Entry(name: $0.name, first: $0.first) }
        for base in places.bases
        where base.name != Places.work || noteWorkPath || old.contains(where: { $0.name == base.name }) {
            let isKnown = base.name == Places.work || given[base.name] != nil
            let entry = Entry(name: base.name, first: base.first, root: isKnown ? base.root : nil)
            entries.removeAll { $0.name == base.name }
            entries.append(entry)
        }
        entries.sort { $0.name < $1.name }
        if entries != old {
            let bytes = try StoreJSON.encode(File(format: Self.format, bases: entries))
            try bytes.withUnsafeBytes { try FileIO.replace(path, aside: "\(path).\(UUID().uuidString)", $0) }
        }
        state.withLock { $0 = State(entries: entries) }
    }
}
