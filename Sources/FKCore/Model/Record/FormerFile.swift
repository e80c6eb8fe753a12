import FKMiddleware
import Foundation

/// The finished file that a refresh or repair is to replace, and what is known about it. It stays as it is, under its name,
/// until the new file is whole.
package struct FormerFile: Codable, Sendable, Hashable {
    /// The absolute path.
    package var path: String
    /// Its length in bytes.
    package var expected: Int64?
    var written: FileIdentity?
    /// The validator of the response that it came from.
    package var validator: Validator?
    var source: String?
    /// The checksums of its pieces, where the record has them.
    package var pieces: [PieceChecksum]?
    var finished: Date?
    var isForeign: Bool?
    var trace: Trace?
    var changed: FileChange?
    /// The damaged bytes, which alone are fetched; nil for a refresh, and empty for a repair that has to fetch the whole file.
    package var damaged: [Renewal.Damage]?

    /// The reason why no engine has written this; nil if it is valid.
    package var fault: String? {
        if !path.isAbsolutePath { return "the file to replace has no absolute path" }
        return expected ?? 0 < 0 ? "the length of the file to replace is negative" : nil
    }
}

extension TaskRecord {
    /// True if damaged bytes of a finished file are fetched, and the others are copied from it.
    package var isRepair: Bool { former?.damaged?.isEmpty == false }

    /// The record of the finished file: this one, or the one before the refresh or repair that has not ended.
    package var ofFinished: TaskRecord {
        guard state != .complete, let former else { return self }
        var record = self
        record.restore(former)
        return record
    }

    /// True if the finished file may be fetched again: the task is complete, or its refresh or repair has failed, was cancelled
    /// or suspended, or was left by a process that has ended.
    package var mayRenew: Bool {
        state == .complete || former != nil && [.error, .cancel, .idle, .action, .suspend].contains(state)
    }

    /// True if there was a finished file, and there may still be one.
    package var hasFinished: Bool { state == .complete || former != nil }

    /// The first entry of the plan that is asked. A repair asks a mirror first: the task's own server has sent the bytes. An
    /// address in place of its URL has not.
    package var firstOfPlan: Int {
        guard let former, former.damaged != nil, former.source == nil, link == nil else { return 0 }
        return plan.count > 1 ? 1 : 0
    }
}
