import FKMiddleware

@testable import FKEngine

/// What a reply holds, for `#require`: nil where the reply is of another kind.
extension EngineReply {
    var addedTasks: [AddResult]? { if case .added(let tasks) = self { tasks } else { nil } }
    var verbResults: [VerbResult]? { if case .verbs(let results) = self { results } else { nil } }
    var doneNote: String? { if case .done(let note) = self { note } else { nil } }
    var limitsReport: LimitsReport? { if case .limits(let report) = self { report } else { nil } }
    var failure: DownloadError? { if case .failed(let error) = self { error } else { nil } }
}

/// Requests in the short form of the tests. Errors are `.failed` where a reply is returned.
extension Engine {
    func answer(_ request: EngineRequest, own: OwnLimits? = nil) async -> EngineReply {
        await answer(EngineMessage(request, own: own))
    }

    func add(_ tasks: [TaskDescription], barrel: String?, run: Bool) async throws -> [AddResult] {
        try await perform(.add(tasks: tasks, barrel: barrel, run: run))
    }

    func apply(_ verb: Verb, to selector: TaskSelector, forAll: Bool = false) async throws -> [VerbResult] {
        if forAll, verb == .resume { return try await perform(.resumeAll) }
        return try await perform(.verb(verb, selector))
    }
}

/// Snapshots in the short form of the tests.
extension Engine {
    func infos(_ selector: TaskSelector) throws -> [DownloadInfo] { try reporter.infos(selector) }
    func infos(_ ids: [TaskID]) throws -> [DownloadInfo] { try reporter.infos(ids) }
    func waitingInfos() -> [DownloadInfo] { reporter.waitingInfos() }
    func openIDs() throws -> TaskIDTable { try book.openIDs() }
    func record(_ id: TaskID) throws -> TaskRecord? { try book.find(id)?.record }
}

extension Mailbox {
    @discardableResult
    func post(_ request: EngineRequest) throws -> MessageID { try post(EngineMessage(request)) }
}
