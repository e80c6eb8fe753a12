import FKMiddleware

@testable import FKCore
@testable import FKEngine

/// What a reply holds, for `#require`: nil where the reply is of another kind.
extension EngineReply {
    var addedTasks: [Added]? { if case .added(let tasks) = self { tasks } else { nil } }
    var verbResults: [VerbResult]? { if case .verbs(let results) = self { results } else { nil } }
    var doneNote: String? { if case .done(let note) = self { note } else { nil } }
    var limitsReport: LimitsReport? { if case .limits(let report) = self { report } else { nil } }
    var failure: DownloadError? { if case .failed(let error) = self { error } else { nil } }
}
