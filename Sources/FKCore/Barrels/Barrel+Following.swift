import FKEngine
import FKMiddleware
import Foundation

/// What `Barrel.set(_:leaving:)` has changed.
public struct BarrelChanges: Sendable {
    /// The tasks that joined.
    public internal(set) var joined: [DownloadTask] = []
    /// The members whose entries name another version of the file, which is downloaded. The finished file stays until then.
    public internal(set) var changed: [DownloadTask] = []
    /// The tasks that left. With `.trash`, those that no other barrel has are gone.
    public internal(set) var left: [DownloadTask] = []
    /// The entries that could not join, with the reasons. A member whose entry is among them stays as it was.
    public internal(set) var failures: [(entry: Builder, error: DownloadError)] = []

    /// True if the barrel has the same members with the same files as before.
    public var isEmpty: Bool { joined.isEmpty && changed.isEmpty && left.isEmpty && failures.isEmpty }
}

extension Barrel {
    /// What becomes of tasks that leave a barrel.
    public enum Leaving: Sendable, Hashable {
        /// They stay, with their files.
        case keep
        /// They are trashed with every file they wrote, unless another barrel has them.
        case trash
    }

    /// Makes the members those of a list: new entries join and are queued, entries with another checksum or size are downloaded again, and
    /// members that are not in the list leave.
    ///
    /// ```swift
    /// let changes = try await barrel.set(try list.map { entry in
    ///     var file = try Builder(entry.url)
    ///     file.folder = folder
    ///     file.options.checksum = entry.checksum
    ///     return file
    /// })
    /// if !changes.isEmpty { try await barrel.publish(to: models) }
    /// ```
    ///
    /// The same list again changes nothing, sends no request and reads no file. An entry is a member if URL and folder are the same. Members
    /// leave first, so that a new version with the name of a trashed one gets that name; with `.keep` the name is taken, and the new
    /// file gets a number. A published folder stays as it is until the next `publish(to:)`. A call that is interrupted is completed by the
    /// next one with the same list.
    ///
    /// - Parameters:
    ///   - entries: the whole list.
    ///   - leaving: what becomes of the tasks that leave; the default keeps them.
    /// - Returns: what was changed.
    /// - Throws: `.cancelled` for a closed downloader; `.disk` and similar codes if an info file cannot be written.
    @discardableResult
    public func set(_ entries: [Builder], leaving: Leaving = .keep) async throws(DownloadError) -> BarrelChanges {
        let places = downloader.engine.workPath.places
        let members = await memberInfos
        var changes = BarrelChanges()
        var wanted: [TaskID: Builder] = [:]
        for entry in entries { wanted[places.id(of: entry.description)] = entry }
        let gone = members.filter { wanted[$0.id] == nil }
        if !gone.isEmpty {
            changes.left = gone.map { DownloadTask($0.id, $0.url, in: downloader) }
            _ = try await typed {
                try await downloader.engine.perform(.line(.removeFromBarrel(name: name, urls: gone.map(\.id.hex))))
            }
            let ours = gone.filter { $0.barrels.allSatisfy { $0.isExactly(name) } }.map(\.id)
            if leaving == .trash, !ours.isEmpty { _ = try await downloader.control.apply(.trash, to: ours) }
        }
        let known = Dictionary(members.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let other = try await downloader.renew(entries.filter { known[places.id(of: $0.description)] != nil })
        var seen: Set<TaskID> = []
        var added: [Builder] = []
        for entry in entries {
            let id = places.id(of: entry.description)
            guard seen.insert(id).inserted else { continue }
            guard let info = known[id] else {
                added.append(entry)
                continue
            }
            if other.contains(id) { changes.changed.append(DownloadTask(id, info.url, in: downloader)) }
            // A whole file needs no comparison.
            if info.state != .complete || info.hasLostFile || other.contains(id) { added.append(entry) }
        }
        guard !added.isEmpty else { return changes }
        for (entry, result) in zip(added, try await add(added)) {
            switch result {
            case .success(let task): if known[task.id] == nil { changes.joined.append(task) }
            case .failure(let error): changes.failures.append((entry, error))
            }
        }
        return changes
    }
}
