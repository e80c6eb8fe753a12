import FKMiddleware
import Foundation

/// Requests and snapshots: answered by the engine of this process, or through the mailbox and from the info files.
extension SharedEngine {
    // MARK: Requests

    /// - Throws: the error of a failed request.
    private func ask(_ request: EngineRequest) async throws -> EngineReply {
        let reply = await perform(request)
        if case .failed(let error) = reply { throw error }
        return reply
    }

    private func unexpected(_ reply: EngineReply) -> DownloadError {
        DownloadError(.corruptInfo, "The engine of \(workPath.root) answered another question: \(reply).")
    }

    func add(
        _ descriptions: [TaskDescription], barrel: String?, run: Bool, group: Int32?
    ) async throws -> [EngineReply.Added] {
        if let engine { return try await engine.add(descriptions, barrel: barrel, run: run, group: group) }
        let reply = try await ask(.add(tasks: descriptions, barrel: barrel, run: run))
        guard case .added(let results) = reply else { throw unexpected(reply) }
        return results
    }

    func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool) async throws -> [VerbResult] {
        if let engine { return try await engine.apply(verb, to: selector, forAll: forAll) }
        return try await verbs(forAll ? .resumeAll : .verb(verb, selector))
    }

    func toggle(_ selector: TaskSelector) async throws -> [VerbResult] {
        if let engine { return try await engine.toggle(selector) }
        return try await verbs(.toggle(selector))
    }

    private func verbs(_ request: EngineRequest) async throws -> [VerbResult] {
        let reply = try await ask(request)
        guard case .verbs(let results) = reply else { throw unexpected(reply) }
        return results
    }

    func join(_ selectors: [TaskSelector], barrelNamed name: String) async throws -> Int {
        if let engine { return try await engine.join(selectors, barrelNamed: name) }
        let reply = try await ask(.join(selectors, barrel: name))
        guard case .count(let count) = reply else { throw unexpected(reply) }
        return count
    }

    func remove(_ urls: [String], fromBarrel name: String) async throws -> String {
        try await note(.removeFromBarrel(name: name, urls: urls))
    }

    func deleteBarrel(_ name: String) async throws -> String { try await note(.deleteBarrel(name: name)) }

    private func note(_ request: EngineRequest) async throws -> String {
        let reply = try await ask(request)
        guard case .done(let note) = reply else { throw unexpected(reply) }
        return note
    }

    func setAttributes(_ selector: TaskSelector, _ attributes: [String: String?]) async throws -> Int {
        if let engine { return try await engine.setAttributes(selector, attributes) }
        _ = try await note(.setAttributes(selector, attributes))
        return try follower.infos(selector).count
    }

    func markUsed(_ selector: TaskSelector) async throws -> Int {
        if let engine { return try await engine.markUsed(selector) }
        _ = try await note(.markUsed(selector))
        return try follower.infos(selector).count
    }

    // MARK: Snapshots

    func infos(_ selector: TaskSelector) async throws -> [DownloadInfo] {
        if let engine { return try await engine.infos(selector) }
        return try follower.infos(selector)
    }

    /// The existing tasks among these ids, in their order.
    func infos(_ ids: [TaskID]) async throws -> [DownloadInfo] {
        if let engine { return try await engine.infos(ids) }
        let infos = follower.infos(ids)
        follower.note(infos)
        return infos
    }

    /// The tasks that can still run. Their numbers begin at 0 and are in the order of submission while this process runs them.
    func openIDs() async throws -> TaskIDTable {
        if let engine { return try await engine.openIDs() }
        return try follower.openIDs()
    }

    func receipts(_ selector: TaskSelector) async throws -> [Receipt] {
        if let engine { return try await engine.receipts(selector) }
        return try Receipt.stored(selector, workPath: URL(fileURLWithPath: workPath.root, isDirectory: true))
    }

    func records(_ query: RecordQuery) async throws -> RecordPage {
        if let engine { return try await engine.records(query) }
        return try RecordReader(workPath: URL(fileURLWithPath: workPath.root, isDirectory: true)).records(query)
    }

    /// Where another process runs the tasks, by priority and then in the order of submission.
    func waitingInfos() async throws -> [DownloadInfo] {
        if let engine { return await engine.waitingInfos() }
        let records = try follower.reader.records { $0.state == .idle }
        return records.sorted { ($1.task.priority, $0.number) < ($0.task.priority, $1.number) }
            .map { DownloadInfo($0) }
    }

    func runningInOrder() async throws -> [DownloadInfo] {
        if let engine { return await engine.runningInOrder() }
        follower.note(try follower.reader.records { $0.state == .action }.map { DownloadInfo($0) })
        return follower.runningInfos()
    }

    /// The running tasks, with fresh speeds.
    func runningInfos() async -> [DownloadInfo] {
        if let engine { return await engine.runningInfos() }
        return follower.runningInfos()
    }

    /// Tasks that wait for their next attempt, at most `limit` of them.
    func retryingInfos(_ limit: Int) async -> [DownloadInfo] {
        if let engine { return await engine.retryingInfos(limit) }
        return follower.retryingInfos(limit)
    }

    func barrelInfo(_ name: String) async throws -> BarrelInfo {
        if let engine { return try await engine.barrelInfo(name) }
        return try follower.barrelInfo(name)
    }

    func barrelNames() async throws -> [String] {
        if let engine { return try await engine.barrelNames() }
        return try follower.reader.barrelNames()
    }

    func barrelURLs(_ name: String) async throws -> [String] {
        if let engine { return try await engine.barrelURLs(name) }
        return try follower.reader.barrel(name).members.map(\.url)
    }
}
