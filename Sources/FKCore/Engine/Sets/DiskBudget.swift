import FKMiddleware
import Foundation

/// What a file needs before it is fetched under a budget of disk space. All numbers are bytes.
enum BudgetDecision: Equatable {
    /// It fits.
    case fits
    /// Finished files have to go first.
    case trims(Room)
    /// It is larger than the budget, whatever goes.
    case isTooLarge

    /// What is to be free before a file is fetched.
    struct Room: Equatable {
        /// The most that finished files may use afterwards.
        var limit: Int64
        /// The bytes that the disk lacks.
        var shortage: DiskTrim.Shortage?
        /// The tasks that are being fetched. Their files are counted already.
        var fetched: Set<TaskID> = []
        /// Their barrels.
        var barrels: Set<ExactText> = []
        /// The most that goes in addition, so that many small files do not look for room one by one.
        var slack: Int64
    }

    /// Decides for one file.
    ///
    /// | the file | the budget | the disk | then |
    /// | --- | --- | --- | --- |
    /// | larger than the budget | any | any | refused |
    /// | other | not looked at yet, or exceeded with the file | any | trimmed |
    /// | other | suffices | lacks bytes | trimmed |
    /// | other | suffices | suffices | fits |
    ///
    /// - Parameters:
    ///   - total: the length of the file.
    ///   - used: what finished files use; nil if nobody has looked yet.
    ///   - promised: the lengths of the files that are being fetched.
    static func decide(
        _ total: Int64, budget: Int64, used: Int64?, promised: Int64, shortage: DiskTrim.Shortage?
    ) -> BudgetDecision {
        if total > budget { return .isTooLarge }
        let rest = remaining(total, budget: budget, promised: promised)
        if shortage == nil, let used, used <= rest { return .fits }
        return .trims(Room(limit: max(0, rest), shortage: shortage, slack: budget / 32))
    }

    /// What finished files may use beside a file; negative if it does not fit beside those that are being fetched.
    static func remaining(_ total: Int64, budget: Int64, promised: Int64) -> Int64 {
        let (rest, isBelow) = (budget - min(total, budget)).subtractingReportingOverflow(promised)
        return isBelow ? .min : rest
    }
}

/// What finished files use of `Configure.diskBudget`, as of the last look at the disk, and what was allowed since. Confined to the engine.
///
/// The files are counted on another thread when they may exceed the budget, so a download that fits costs nothing.
final class DiskBudget {
    private let schedule: Schedule
    private let workPath: WorkPath
    /// Called with what was deleted.
    var onTrim: (TrimmedFiles) -> Void = { _ in }
    /// What finished files used at the last look; nil before it.
    private var used: Int64?
    /// The lengths of the files that were allowed and have ended since.
    private var ended: Int64 = 0
    /// The lengths of the files that are being fetched.
    private var claims: [TaskID: Int64] = [:]

    init(_ schedule: Schedule, _ workPath: WorkPath) { (self.schedule, self.workPath) = (schedule, workPath) }

    /// The budget; nil without one.
    private var limit: Int64? { schedule.configure.diskBudget }

    /// Claims room for a small file whose length is not known yet.
    ///
    /// - Returns: false if finished files may have to go first.
    func claims(_ bytes: Int64, for id: TaskID) -> Bool {
        guard limit != nil else { return true }
        guard case .fits = decide(bytes, for: id, shortage: nil) else { return false }
        claims[id] = bytes
        return true
    }

    /// Claims room for a file.
    ///
    /// - Parameter shortage: what the disk lacks for it; nil if it suffices.
    /// - Returns: the work that makes room, for another thread; nil if the file fits. Call `trimmed` with its result, and then this again.
    /// - Throws: `.noSpace` for a file that is larger than the budget.
    func room(
        for total: Int64, of entry: TaskEntry, shortage: DiskTrim.Shortage?
    ) throws(DownloadError) -> (@Sendable () -> Result<TrimmedFiles, DownloadError>)? {
        guard let limit else { return nil }
        switch decide(total, for: entry.id, shortage: shortage) {
        case .fits:
            claims[entry.id] = total
            return nil
        case .isTooLarge:
            throw DownloadError(
                .noSpace,
                "The file has \(ByteSize.format(total)), and the disk budget is \(ByteSize.format(limit)).",
                url: entry.record.task.url.masked, remedy: .raiseDiskBudget)
        case .trims(var room):
            claims[entry.id] = total
            let before = ended
            room.fetched = Set(claims.keys)
            for id in room.fetched {
                for barrel in schedule.running[id]?.record.barrels ?? [] { room.barrels.insert(ExactText(barrel)) }
            }
            return { [workPath, room] in
                Result { () throws(DownloadError) in
                    do {
                        var result = try DiskTrim(workPath, by: .lastUsed).trim(room)
                        result.endedBefore = before
                        return result
                    } catch {
                        throw DownloadError(wrapping: error, code: .disk, message: "No room could be made.")
                    }
                }
            }
        }
    }

    /// Receives the result of making room.
    ///
    /// - Throws: `.noSpace` if the file still does not fit into the budget; the error of the work.
    func trimmed(
        _ result: Result<TrimmedFiles, DownloadError>, for total: Int64, of entry: TaskEntry
    ) throws(DownloadError) {
        let trimmed = try result.get()
        used = trimmed.usedBytes
        ended = max(0, ended - trimmed.endedBefore)
        if !trimmed.isEmpty { onTrim(trimmed) }
        let promised = promised(besides: entry.id)
        guard let limit, trimmed.usedBytes > BudgetDecision.remaining(total, budget: limit, promised: promised) else {
            return
        }
        claims[entry.id] = nil
        let failure = trimmed.failures.first.map { " \($0.message)" } ?? ""
        let names = trimmed.inUse.isEmpty ? "" : " (\(trimmed.inUse.joined(separator: ", ")))"
        throw DownloadError(
            .noSpace,
            "The file has \(ByteSize.format(total)), and the disk budget of \(ByteSize.format(limit)) has too little left: files that cannot "
                + "go\(names) use \(ByteSize.format(trimmed.usedBytes)), and files that are being fetched need "
                + "\(ByteSize.format(promised)).\(failure)",
            url: entry.record.task.url.masked, isRetryable: entry.received > 0 || promised > 0,
            remedy: .raiseDiskBudget)
    }

    private func decide(_ total: Int64, for id: TaskID, shortage: DiskTrim.Shortage?) -> BudgetDecision {
        guard let limit else { return .fits }
        for (claimed, bytes) in claims where schedule.running[claimed] == nil {
            ended = ended.addingReportingOverflow(bytes).overflow ? .max : ended + bytes
            claims[claimed] = nil
        }
        // It has made room already.
        if shortage == nil, claims[id] == total, used != nil { return .fits }
        return .decide(
            total, budget: limit, used: used.map { $0.addingReportingOverflow(ended).overflow ? .max : $0 + ended },
            promised: promised(besides: id), shortage: shortage)
    }

    private func promised(besides id: TaskID) -> Int64 {
        claims.reduce(0) { sum, claim in
            if claim.key == id { return sum }
            let (more, isAbove) = sum.addingReportingOverflow(claim.value)
            return isAbove ? .max : more
        }
    }
}
