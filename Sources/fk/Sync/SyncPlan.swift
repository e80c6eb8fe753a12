import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// What a synchronization does to known tasks.
struct SyncPlan {
    /// The files that are fetched again.
    private(set) var changed: [SourceComparison.File] = []
    /// The members with another address, and the address.
    private(set) var moved: [(id: TaskID, url: String)] = []
    /// Their new sizes and digests.
    private(set) var changes: [TaskChange] = []
    /// The versions that the listing says, of files that are fetched again or are the same.
    private(set) var versions: [(id: TaskID, version: String)] = []
    /// The number of files that could not be asked for.
    var failures = 0

    /// Takes the size and the digests of the listing where they differ: the file is fetched again without a question.
    ///
    /// - Returns: false if the listing says nothing else about the bytes.
    mutating func takesNewFacts(
        _ task: TaskDescription, of file: SourceComparison.File, _ global: GlobalOptions
    ) -> Bool {
        guard storeFacts(of: task, file, global) else { return false }
        renew(file)
        return true
    }

    /// Takes the address of the listing for a member, and its facts. The file is fetched again unless it is known to be the same.
    mutating func move(_ file: SourceComparison.File, _ task: TaskDescription, _ global: GlobalOptions) {
        storeFacts(of: task, file, global)
        if file.isMoved { moved.append((file.id, task.url)) }
        if file.result == .changed { renew(file) } else { record(file) }
    }

    /// - Returns: false if the listing says nothing else about the bytes than the task.
    @discardableResult
    mutating func storeFacts(
        of task: TaskDescription, _ file: SourceComparison.File, _ global: GlobalOptions
    ) -> Bool {
        guard let record = try? StoreReader(global.place).record(file.id) else { return false }
        var options = record.task.options
        let asked = task.options
        // The digest and the size of a listing, which may give none any more.
        let isOther =
            (asked.checksum != nil || options.list != nil) && asked.checksum != options.checksum
            || asked.size != options.size || asked.entityTag != options.entityTag
        guard isOther else { return false }
        (options.checksum, options.size, options.pieces) = (asked.checksum, asked.size, asked.pieces)
        options.entityTag = asked.entityTag
        options.list = asked.list
        var change = TaskChange(file.id)
        change.options = options
        if file.isMoved { change.mirrors = task.mirrors }
        changes.append(change)
        return true
    }

    /// Fetches a file again.
    mutating func renew(_ file: SourceComparison.File) {
        var file = file
        file.result = .changed
        changed.append(file)
        record(file)
    }

    /// Records the version of the listing.
    mutating func record(_ file: SourceComparison.File) {
        guard let text = file.task?.attributes[SourceVersion.attribute] else { return }
        versions.append((file.id, text))
    }
}
