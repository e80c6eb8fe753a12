import FKMiddleware
import Foundation

/// Adds tasks: creates them from descriptions, or finds existing ones.
extension TaskControl {
    /// Tasks that are being added. `finish` compares finished files with the requested digests.
    package struct Addition {
        let barrel: String?
        let run: Bool
        let group: Int32?
        fileprivate var rest: ArraySlice<TaskDescription>
        fileprivate(set) var results: [AddResult] = []
        fileprivate(set) var comparisons: [DigestCheck] = []
        /// The number of tasks of the last portion.
        fileprivate var portionCount = 0

        fileprivate init(_ descriptions: [TaskDescription], barrel: String?, run: Bool, group: Int32?) {
            rest = descriptions[...]
            self.barrel = barrel
            self.run = run
            self.group = group ?? (run ? CommandGroups.none : nil)
            results.reserveCapacity(descriptions.count)
        }
    }

    /// Continues an addition of an engine that was killed: its tasks are made, and their states stay. `finish` compares
    /// the finished files that are left.
    func resumeAddition(
        _ results: [AddResult], _ comparisons: [DigestCheck], run: Bool, group: Int32?
    ) throws -> Addition {
        try ownership.checkOpen()
        var addition = Addition([], barrel: nil, run: run, group: group)
        addition.results = results
        addition.comparisons = comparisons.filter { results.indices.contains($0.position) }
        guard run || runsAll else { return addition }
        for result in results where result.error == nil {
            guard let entry = try book.find(result.id) else { continue }
            join(entry, group: addition.group)
            admit(entry)
        }
        return addition
    }

    /// Begins an addition. `addPortion` follows until it returns false, then `endAddition`.
    func beginAddition(
        _ descriptions: [TaskDescription], barrel name: String?, run: Bool, group: Int32?
    ) throws -> Addition {
        try ownership.checkOpen()
        book.unloadFound()
        if let name {
            try barrels.open(name, creating: true)
            barrels.book.begin(name)
        }
        return Addition(descriptions, barrel: name, run: run, group: group)
    }

    /// The number of tasks whose info files are written together.
    private static let makingCount = 64
    /// The number of tasks of a portion but the first.
    private static let portionCount = 256

    /// Adds the next tasks. Another thread writes their info files, so the first tasks run while the last ones are created, and the
    /// info files of the next ones are written while this thread adds some.
    ///
    /// - Returns: false if there are no more.
    func addPortion(
        _ addition: inout Addition, isolation: isolated (any Actor)? = #isolation
    ) async throws -> Bool {
        guard !addition.rest.isEmpty else { return false }
        let name = addition.barrel
        // The barrel may have been deleted since the last portion, and may be deleted while the info files are written.
        let options = try name.map { try barrels.open($0, creating: true).options }
        let count = addition.results.isEmpty ? Self.makingCount : Self.portionCount
        let portion = addition.rest.prefix(count).map { options?.completing($0) ?? $0 }
        addition.rest = addition.rest.dropFirst(count)
        addition.portionCount = portion.count
        let ids = portion.map(book.places.id)
        ownership.beat()
        for id in ids where book[id]?.record.state == .unknown { await untilForgotten(id) }
        await book.beginMaking()
        defer { book.endMaking() }
        func begin(_ start: Int) -> Making? {
            guard start < portion.count else { return nil }
            let range = start..<min(start + Self.makingCount, portion.count)
            return make(Array(portion[range]), Array(ids[range]), barrel: name)
        }
        var next = begin(0)
        var index = 0
        while let making = next {
            let made = await making.value()
            try ownership.checkOpen()
            if let name { try barrels.open(name, creating: true) }
            next = begin(index + made.count)
            for result in made {
                let isMember = name.map { barrels.book.contains(ids[index], in: $0) } ?? true
                let (added, isCompared) = add(portion[index], ids[index], result, addition)
                if isCompared {
                    addition.comparisons.append(
                        .init(
                            position: addition.results.count, task: portion[index], barrel: isMember ? nil : name))
                }
                addition.results.append(added)
                index += 1
            }
        }
        return true
    }

    /// Info files that are being written.
    private final class Making: Sendable {
        private let state = Locked<(made: [Made]?, waiting: CheckedContinuation<[Made], Never>?)>((nil, nil))

        func finish(_ made: [Made]) {
            let waiting = state.withLock { state in
                state.made = made
                return state.waiting
            }
            waiting?.resume(returning: made)
        }

        /// The results; call it once.
        func value(isolation: isolated (any Actor)? = #isolation) async -> [Made] {
            await withCheckedContinuation { continuation in
                let made = state.withLock { state in
                    if state.made == nil { state.waiting = continuation }
                    return state.made
                }
                if let made { continuation.resume(returning: made) }
            }
        }
    }

    /// Removes the tasks of the last portion that have no slot from memory. Finished ones follow after the next query of them.
    func park(_ addition: Addition) {
        for result in addition.results.suffix(addition.portionCount) {
            if !result.isNew, result.state == .complete { book.unloadLater(result.id) } else { book.unload(result.id) }
        }
    }

    /// Ends an addition.
    ///
    /// - Throws: `.noSpace` or `.disk` if the barrel could not be saved. For tasks that run, that is a problem and no error.
    func endAddition(_ addition: Addition) throws(DownloadError) {
        guard let name = addition.barrel else { return barrels.save() }
        barrels.book.end(name)
        if addition.run { barrels.save() } else { try barrels.save(name) }
    }

    /// Compares finished files with the requested digests.
    func finish(
        _ addition: Addition, isolation: isolated (any Actor)? = #isolation
    ) async -> [AddResult] {
        var results = addition.results
        for comparison in addition.comparisons {
            switch await compare(comparison, results) {
            case .success(let state):
                guard let state else { continue }
                results[comparison.position].state = state
                results[comparison.position].isChanged = true
            case .failure(let error):
                results[comparison.position].error = error
                // What is refused does not join the barrel.
                if let name = comparison.barrel {
                    book.problems.during { _ = try remove([results[comparison.position].id.hex], fromBarrel: name) }
                }
            }
        }
        return results
    }

    /// Waits until a trashed task is gone, so that it can be created again. It does not wait for a middleware that may wait for
    /// the caller.
    private func untilForgotten(_ id: TaskID, isolation: isolated (any Actor)? = #isolation) async {
        guard !isInChain else { return }
        while let entry = book[id], entry.record.state == .unknown, let run = entry.taskRun {
            guard await run.ended() else { return }
        }
    }

    /// A new task with its info file; nil for an existing task, an error if the task could not be created.
    private typealias Made = Result<(record: TaskRecord, info: InfoHandle)?, DownloadError>

    /// Writes the info files of the new tasks.
    private func make(_ descriptions: [TaskDescription], _ ids: [TaskID], barrel: String?) -> Making {
        let making = Making()
        var records: [Result<TaskRecord?, DownloadError>] = []
        // The tasks of a list have one folder, as a rule.
        var checked: String?
        for (description, id) in zip(descriptions, ids) {
            do {
                // A task that is only on disk is found when its info file cannot be created again.
                if book.knows(id) {
                    records.append(.success(nil))
                } else {
                    try check(description)
                    try description.attributes.checkAsAttributes()
                    if let folder = description.directory, checked?.isExactly(folder) != true {
                        // A folder that cannot be opened fails the attempt.
                        if let error = try? Folder.inWorkPath(book.workPath, folder) { throw error }
                        checked = folder
                    }
                    records.append(.success(try book.newRecord(description, id, barrel: barrel)))
                }
            } catch {
                records.append(.failure(Self.notMade(error)))
            }
        }
        // For a single task, another thread costs more than it saves.
        if records.count == 1 {
            making.finish([Self.create(records[0], in: book.workPath, setsMode: true)])
            return making
        }
        diskWork.async { [records, workPath = book.workPath] in
            let setsMode = !UsualMask.keepsOwner
            making.finish(records.map { Self.create($0, in: workPath, setsMode: setsMode) })
        }
        return making
    }

    /// Checks a description, which may come from any program and not from `Builder`.
    private func check(_ description: TaskDescription) throws(DownloadError) {
        let fault =
            description.fault ?? description.fileName.flatMap(fault(inName:))
            ?? description.optionsBox?.value.fault
        if let fault { throw DownloadError(.invalidArgument, "Such a task cannot be made: \(fault).") }
    }

    private func fault(inName name: String) -> String? {
        FileNameRules.fault(inAsked: name, mayHide: true).map { fault in
            "its file's name \(name.prefix(60).visible) cannot be used: \(fault)"
        }
    }

    private static func create(
        _ record: Result<TaskRecord?, DownloadError>, in workPath: WorkPath, setsMode: Bool
    ) -> Made {
        record.flatMap { record in
            guard var record else { return .success(nil) }
            do {
                if record.task.optionsBox?.value.pieces != nil {
                    // An existing task decides first (`readmit`).
                    if access(workPath.infoPath(record.id), F_OK) == 0 { return .success(nil) }
                    try PieceDigestFile.store(&record.task, as: record.id, in: workPath)
                }
                let info = try InfoFile.create(
                    at: workPath.infoPath(record.id), record: record, places: workPath.places, setsMode: setsMode)
                return .success((record, info))
            } catch let error as DownloadError where error.code == .fileExists {
                // The portion contains the task twice, or another request has created it.
                return .success(nil)
            } catch {
                return .failure(notMade(error))
            }
        }
    }

    private static func notMade(_ error: any Error) -> DownloadError {
        DownloadError(wrapping: error, code: .disk, message: "The task could not be made.")
    }

    /// Writes the digests of pieces beside the info file, where the description has any.
    private func keepingPieces(_ description: TaskDescription, _ id: TaskID) throws -> TaskDescription {
        guard description.optionsBox?.value.pieces != nil else { return description }
        var description = description
        try PieceDigestFile.store(&description, as: id, in: book.workPath)
        return description
    }

    /// - Returns: the result, and true if the finished file has to be compared with the request.
    private func add(
        _ description: TaskDescription, _ id: TaskID, _ made: Made, _ addition: Addition
    ) -> (AddResult, Bool) {
        let (barrel, mayRun) = (addition.barrel, addition.run || runsAll)
        do {
            let entry: TaskEntry
            var readmission = Readmission()
            let new = try made.get()
            let known = new == nil ? try book.find(id) : nil
            if let known {
                entry = known
                book.writeRecovery(entry)
                try check(description)
                readmission = try readmit(entry, as: description, mayRun: mayRun)
                join(entry, group: addition.group)
            } else {
                let (record, info) = try new ?? book.makeAgain(keepingPieces(description, id), id, barrel: barrel)
                entry = book.entry(record, info, isNew: true)
                entry.group = addition.group ?? CommandGroups.none
                book.insert(entry)
                // It becomes a member before it is counted, so that it is counted once.
                if let barrel { _ = barrels.book.insert(.init(id: id, url: description.url), into: barrel) }
                reporter.stateChanged(entry)
            }
            if let barrel { join(entry, barrel: barrel) }
            joinAwaited(entry)
            if mayRun { admit(entry) }
            var added = AddResult(id: id, state: entry.record.state, isNew: known == nil)
            if readmission.isChanged { added.isChanged = true }
            if readmission.isOutdated { added.isOutdated = true }
            if readmission.isEdited { added.isEdited = true }
            return (added, readmission.isCompared)
        } catch {
            var error = Self.notMade(error)
            error.url = error.url ?? description.url.masked
            return (.init(id: id, state: .unknown, isNew: false, error: error), false)
        }
    }
}
