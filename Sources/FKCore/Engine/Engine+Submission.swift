import FKMiddleware
import Foundation

/// Tasks in: made from descriptions, or found again on disk.
extension Engine {
    /// Carries out what another component or process asks for. Errors come back as `.failed`; an engine that closes
    /// answers `.cancelled` and touches nothing, for the work path may be another process's already.
    ///
    /// - Parameter own: limits for the tasks that the request adds or has run.
    package func perform(_ request: EngineRequest, own: OwnLimits? = nil) async -> EngineReply {
        await afterLeftovers()
        return await begin(request, own: own).reply
    }

    /// Carries a request out as far as states are concerned. Returns with the answer, or with the waiting for attempts that
    /// are being stopped, or for files that are being compared.
    func begin(_ request: EngineRequest, own: OwnLimits? = nil) async -> Begun {
        do {
            try checkOpen()
            let group = try group(of: own)
            switch request {
            case .add(let tasks, let barrel, let run):
                let begun = try await addInTurn(tasks, barrel: barrel, run: run, group: group)
                if begun.comparisons.isEmpty { return .done(.added(begun.results)) }
                try beginOperation()
                return .waiting(
                    Task {
                        defer { endOperation() }
                        return .added(await finish(begun))
                    })
            case .verb(let verb, let selector): return try begin(choose(selector) { _ in verb })
            case .toggle(let selector): return try begin(choose(selector, Self.toggled))
            case .chosen(let choices): return try begin(choices)
            case .setAttributes(let selector, let attributes):
                let count = try setAttributes(selector, attributes)
                return .done(.done(note: "attributes of \(Plural.count(count, "task")) changed"))
            case .markUsed(let selector):
                let count = try markUsed(selector)
                return .done(.done(note: "\(Plural.count(count, "task")) marked as used"))
            case .createBarrel(let name, let options):
                return .done(.done(note: try createBarrel(name, options: options)))
            case .removeFromBarrel(let name, let urls):
                return .done(.done(note: try remove(urls, fromBarrel: name)))
            case .deleteBarrel(let name):
                return .done(.done(note: try deleteBarrel(name)))
            case .run(let selector):
                return .done(.done(note: try admit(selector, group: group)))
            case .limit(let rate, let barrel):
                return .done(.done(note: try setLimit(rate, barrel: barrel)))
            case .limits:
                return .done(.limits(try limitsReport()))
            case .limited(let limits, let request):
                return await begin(request, own: limits)
            case .setLimits(let maxAction, let rateLimit):
                var changed = configure
                if let maxAction { changed.maxAction = maxAction }
                if let rateLimit { changed.rateLimit = rateLimit == 0 ? nil : rateLimit }
                try update(changed)
                return .done(.done(note: "limits changed"))
            }
        } catch {
            return .done(.failed(DownloadError(wrapping: error, code: .disk, message: "The request failed.")))
        }
    }

    private func begin(_ choices: [VerbChoice]) throws -> Begun {
        let begun = try begin(choices, forAll: false)
        if begun.stops.isEmpty { return .done(.verbs(begun.results)) }
        // The lock is held until that is done.
        try beginOperation()
        return .waiting(
            Task {
                defer { endOperation() }
                return .verbs(await finish(begun))
            })
    }

    /// Makes tasks, or finds them again, and queues them.
    ///
    /// Done in portions, whose info files are written by another thread: the first tasks run while the last ones are
    /// still being made.
    package func add(
        _ descriptions: [TaskDescription], barrel name: String?, run: Bool, group: Int32? = nil
    ) async throws -> [EngineReply.Added] {
        await afterLeftovers()
        try beginOperation()
        defer { endOperation() }
        return await finish(try await addInTurn(descriptions, barrel: name, run: run, group: group))
    }

    /// Tasks that were added. `finish` compares finished files with the digests they are asked for with.
    struct BegunAddition {
        var results: [EngineReply.Added] = []
        fileprivate(set) var comparisons: [Comparison] = []
    }

    private func finish(_ begun: BegunAddition) async -> [EngineReply.Added] {
        var results = begun.results
        for comparison in begun.comparisons {
            results[comparison.place].error = await compare(comparison, results)
        }
        return results
    }

    private func addInTurn(
        _ descriptions: [TaskDescription], barrel name: String?, run: Bool, group: Int32?
    ) async throws -> BegunAddition {
        try checkOpen()
        if let name {
            try openBarrel(name, creating: true)
            barrels.begin(name)
        }
        defer { if let name { barrels.end(name) } }
        var begun = BegunAddition()
        begun.results.reserveCapacity(descriptions.count)
        var rest = descriptions[...]
        while !rest.isEmpty {
            // Somebody may have deleted the barrel meanwhile, and may again while the info files are written.
            let options = try name.map { try openBarrel($0, creating: true).options }
            let portion = rest.prefix(64).map { options?.completing($0) ?? $0 }
            rest = rest.dropFirst(64)
            let ids = portion.map(\.id)
            beat()
            for id in ids { await untilForgotten(id) }
            await beginMaking()
            defer { endMaking() }
            let made = await make(portion, ids, barrel: name)
            try checkOpen()
            if let name { try openBarrel(name, creating: true) }
            for index in portion.indices {
                let (added, checksum) = add(
                    portion[index], ids[index], made[index], barrel: name, run: run,
                    group: group ?? (run ? CommandGroups.none : nil))
                if let checksum {
                    begun.comparisons.append(
                        .init(place: begun.results.count, task: portion[index], checksum: checksum))
                }
                begun.results.append(added)
            }
            schedule()
            for id in ids { if let entry = tasks[id] { park(entry) } }
        }
        saveBarrels()
        return begun
    }

    /// What is asked for again after it was trashed is made anew once the trashing has come to its end, unless that waits
    /// for a middleware which may wait for this.
    private func untilForgotten(_ id: TaskID) async {
        guard !MiddlewareCall.isInside(ObjectIdentifier(self), .chain) else { return }
        while let entry = tasks[id], entry.record.state == .unknown, let attempt = entry.attempt {
            guard await attempt.ended() else { return }
        }
    }

    /// One portion at a time: between its info file and its entry in memory a task is neither new nor known, and a second
    /// asking for it would make it twice.
    private func beginMaking() async {
        while isMaking { await withCheckedContinuation { whenMade.append($0) } }
        isMaking = true
    }

    private func endMaking() {
        isMaking = false
        for waiting in whenMade { waiting.resume() }
        whenMade = []
    }

    /// A new task whose info file is on disk; nil for one that is known, an error for one that could not be made.
    private typealias Made = Result<(record: TaskRecord, info: InfoHandle)?, DownloadError>

    /// Writes the info files of those tasks that are new.
    private func make(_ descriptions: [TaskDescription], _ ids: [TaskID], barrel: String?) async -> [Made] {
        var records: [Result<TaskRecord?, DownloadError>] = []
        for (description, id) in zip(descriptions, ids) {
            do {
                // One that is only on disk is found when its info file cannot be made a second time.
                if tasks[id] != nil || isParked(id) || isRetired(id) {
                    records.append(.success(nil))
                } else {
                    try check(description)
                    try AttributeRules.check(description.attributes)
                    var record = TaskRecord(
                        task: description, id: id, number: try numbers.next(), created: clock.date)
                    if let barrel { record.barrels = [barrel] }
                    records.append(.success(record))
                }
            } catch {
                records.append(.failure(Self.notMade(error)))
            }
        }
        // One task alone is not worth the way to another thread and back.
        if records.count == 1 { return [Self.create(records[0], in: workPath)] }
        return await withCheckedContinuation { continuation in
            diskWork.async { [records, workPath] in
                continuation.resume(returning: records.map { Self.create($0, in: workPath) })
            }
        }
    }

    /// A message may come from any program: what `Builder` sees to is not taken for granted.
    private func check(_ description: TaskDescription) throws(DownloadError) {
        let objection =
            description.fault ?? description.fileName.flatMap(AskedForName.objection)
            ?? (description.hasOptions ? description.options.fault : nil)
        if let objection { throw DownloadError(.invalidArgument, "Such a task cannot be made: \(objection).") }
    }

    private static func create(_ record: Result<TaskRecord?, DownloadError>, in workPath: WorkPath) -> Made {
        record.flatMap { record in
            guard let record else { return .success(nil) }
            do {
                return .success((record, try InfoFile.create(at: workPath.infoPath(record.id), record: record)))
            } catch let error as DownloadError where error.code == .fileExists {
                // The same task twice in one portion, or made by another request meanwhile.
                return .success(nil)
            } catch {
                return .failure(notMade(error))
            }
        }
    }

    private static func notMade(_ error: any Error) -> DownloadError {
        DownloadError(wrapping: error, code: .disk, message: "The task could not be made.")
    }

    /// - Returns: with what a finished file is still to be compared.
    private func add(
        _ description: TaskDescription, _ id: TaskID, _ made: Made, barrel: String?, run: Bool,
        group: Int32?
    ) -> (EngineReply.Added, Checksum?) {
        do {
            let entry: TaskEntry
            var checksum: Checksum?
            let new = try made.get()
            let known = new == nil ? try find(id) : nil
            if let known {
                entry = known
                if entry.isRecovered { write(entry) }
                try check(description)
                checksum = try readmit(entry, as: description, mayRun: run || scope == .all)
                join(entry, group: group)
            } else {
                let (record, info) = try new ?? makeAgain(description, id, barrel: barrel)
                entry = TaskEntry(record: record, info: info, isNew: true)
                entry.group = group ?? CommandGroups.none
                remember(entry)
                // A member before it is counted, so that it is counted once.
                if let barrel { _ = barrels.insert(.init(id: id, url: description.url), into: barrel) }
                stateChanged(entry)
            }
            if let barrel { join(entry, barrelNamed: barrel) }
            if run || scope == .all { admit(entry) }
            return (.init(id: id, state: entry.record.state, isNew: known == nil), checksum)
        } catch {
            return (.init(id: id, state: .unknown, isNew: false, error: Self.notMade(error)), nil)
        }
    }

    /// Of a task whose making was interrupted, or whose info file has just gone to the quarantine.
    private func makeAgain(
        _ description: TaskDescription, _ id: TaskID, barrel: String?
    ) throws -> (record: TaskRecord, info: InfoHandle) {
        let path = workPath.infoPath(id)
        try InfoFile.removeUnwritten(path)
        var record = TaskRecord(task: description, id: id, number: try numbers.next(), created: clock.date)
        if let barrel { record.barrels = [barrel] }
        do {
            return (record, try InfoFile.create(at: path, record: record))
        } catch let error as DownloadError where error.code == .fileExists {
            // Of a later version, or held by a disk that does not let it go.
            throw DownloadError(.corruptInfo, "The info file of the task cannot be read: \(path).")
        }
    }

    // MARK: Finding

    /// A task in memory or on disk; nil when there is none of that id.
    func find(_ id: TaskID) throws -> TaskEntry? {
        guard mayWrite else { return lookUp(id) }
        if let entry = tasks[id] ?? unrest(id) { return entry }
        if hasLoadedAll { return nil }
        return load(id)
    }

    func find(_ selector: TaskSelector) throws -> [TaskEntry] {
        guard mayWrite else { return try lookUp(selector) }
        switch selector {
        case .id(let id):
            return try find(id).map { [$0] } ?? []
        case .url(let text):
            let url = try URLNormalizer.normalize(text)
            loadAll()
            if tasksByURL == nil {
                var byURL = ExactMap<[TaskID]>()
                for entry in tasks.values { byURL[entry.record.task.url, default: []].append(entry.id) }
                tasksByURL = byURL
            }
            return (tasksByURL?[url] ?? []).compactMap { tasks[$0] }.sorted { $0.record.number < $1.record.number }
        case .barrel(let name):
            return try barrelMembers(name).compactMap { try find($0.id) }
        case .all:
            loadAll()
            return tasks.values.sorted { $0.record.number < $1.record.number }
        }
    }

    /// Reads every record of the work path that is not in memory yet.
    package func loadAll() {
        guard !hasLoadedAll, mayWrite else { return }
        for id in workPath.allTaskIDs() where tasks[id] == nil && unrest(id) == nil { load(id) }
        hasLoadedAll = true
    }

    /// Brings a task back into memory as its last engine left it.
    @discardableResult
    private func load(_ id: TaskID) -> TaskEntry? {
        guard let entry = readEntry(id, isNew: false) else { return nil }
        remember(entry)
        recover(entry)
        return entry
    }

    /// Reads a task as it is on disk, or quarantines an info file nobody can read.
    ///
    /// - Parameter open: keeps the info file open.
    func readEntry(_ id: TaskID, isNew: Bool, open: OpenInfoFile? = nil) -> TaskEntry? {
        beat()
        let path = workPath.infoPath(id)
        do {
            let contents = try InfoFile.read(path, open: open)
            // The id is made of URL and destination: neither can be another one under the same name.
            guard contents.record.id == id, contents.record.task.id == id else {
                throw DownloadError(.corruptInfo, "The info file \(path) holds another task.")
            }
            return TaskEntry(
                record: contents.record.applyingLiveCounters(contents.counters), info: contents.handle, isNew: isNew)
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        } catch let error as DownloadError where error.code == .corruptInfo {
            problems.append(Quarantine.move(path, in: workPath, because: error, now: clock.date).message)
        } catch {
            problems.append("\(error)")
        }
        return nil
    }

    func remember(_ entry: TaskEntry) {
        texts.share(entry)
        tasks[entry.id] = entry
        tasksByURL?[entry.record.task.url, default: []].append(entry.id)
    }

    func dropFromMemory(_ entry: TaskEntry) {
        tasks[entry.id] = nil
        tasksByURL?[entry.record.task.url]?.removeAll { $0 == entry.id }
        if tasksByURL?[entry.record.task.url]?.isEmpty == true { tasksByURL?[entry.record.task.url] = nil }
    }

    /// What a task that its last engine left running, or in the middle of being published, becomes.
    ///
    /// Before the queue is activated this happens in memory alone: to ask for a task writes nothing.
    private func recover(_ entry: TaskEntry) {
        forgetLeftBehind(entry)
        entry.record.finishRename()
        if entry.record.state == .complete, removeSetAside(of: entry) { write(entry) }
        switch entry.record.state {
        case .action where isPublished(entry) && chains.response.isEmpty:
            if isActive {
                complete(entry)
            } else {
                entry.record.finish(received: entry.received, at: clock.date)
                entry.record.partName = nil
                entry.record.state = .complete
                noteUnsynced(entry)
                entry.isRecovered = true
            }
        case .action, .prepare:
            entry.record.state = entry.record.task.type == .background ? .idle : .suspend
            // The attempt did not fail: its process ended.
            entry.record.attempts = max(0, entry.record.attempts - 1)
            entry.record.waiting = nil
            writeRecovered(entry)
        case .complete where entry.record.isRenameMissing:
            // The record was written before the bytes had to be on the disk: after a power cut only synced ones count.
            entry.record.state = .action
            entry.record = entry.record.applyingLiveCounters([])
            entry.record.path = nil
            entry.record.finished = nil
            entry.record.state = entry.record.task.type == .background ? .idle : .suspend
            writeRecovered(entry)
        case .complete where entry.record.needsProof():
            demandProof(of: entry)
        case .idle:
            if entry.record.task.type == .foreground { entry.record.state = .suspend }
        default: break
        }
        if scope == .all { admit(entry) }
        account(entry)
    }

    /// Writes what was brought into order, or leaves that to the activation of the queue, a verb or an addition.
    func writeRecovered(_ entry: TaskEntry) {
        entry.isRecovered = true
        if isActive { write(entry) }
    }
}
