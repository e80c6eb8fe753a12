import FKMiddleware
import Foundation

/// Snapshots: answered by the engine of this process, or from the info files.
extension SharedEngine {
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
