import FKCore
import FKEngine
import FKMiddleware
import Foundation

extension Messager {
    // MARK: Lookups

    /// True if the task exists, in memory or on disk.
    public func exists(_ selector: some TaskSelecting) async -> Bool { await !all(selector).isEmpty }

    /// The state of the task; `.unknown` if there is no such task.
    public func state(_ selector: some TaskSelecting) async -> DownloadState { await info(selector)?.state ?? .unknown }

    /// The error of a failed task, or of the last attempt while a retry is due; else nil.
    public func error(_ selector: some TaskSelecting) async -> DownloadError? { await info(selector)?.error }

    /// The path of the task's file, in every state: that of the finished file, or the one that it will have; nil if there is no
    /// such task.
    ///
    /// Before the task is complete, no file need be there, and the name may still change: with the server's answer, or because
    /// it is taken. `DownloadInfo.fileURL` is nil until then.
    public func filePath(_ selector: some TaskSelecting) async -> String? {
        guard let record = await record(selector) else {
            await recordUnknown(selector)
            return nil
        }
        return record.path ?? record.destination
    }

    // MARK: Barrels

    /// Creates a barrel of these tasks, or adds them to the existing one. A URL without a task is kept, also across
    /// restarts: its task joins when it is made. Until then it is no member and not counted.
    ///
    /// - Returns: the number of tasks that joined now.
    /// - Throws: `.invalidArgument` for an invalid name, `.invalidURL` for an invalid URL.
    @discardableResult
    public func addBarrel(_ name: String, urls: [String]) async throws(DownloadError) -> Int {
        try await join(urls.map(\.selector), barrel: name)
    }

    /// Deletes the barrel and removes its callbacks (`Barrel.delete()`). Its tasks are kept.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    public func removeBarrel(_ name: String) async throws(DownloadError) { try await deleteBarrel(name) }

    /// Adds tasks to a barrel, which is created if missing (`Barrel.join(_:)`). Existing members stay. A URL without a task joins
    /// when its task is made.
    ///
    /// - Returns: the number of tasks that joined.
    /// - Throws: `.invalidArgument` for an invalid name, `.invalidURL` for an invalid URL.
    @discardableResult
    public func add(_ selector: some TaskSelecting, toBarrel name: String) async throws(DownloadError) -> Int {
        try await join([selector.selector], barrel: name)
    }

    /// Removes the selected tasks from a barrel (`Barrel.remove(_:)`). The tasks are kept.
    ///
    /// - Parameter selector: `.all` means all members, another barrel the members that both have.
    /// - Throws: `.notFound` if there is no such barrel or none of the tasks is in it, `.invalidURL` for an invalid URL.
    public func remove(_ selector: some TaskSelecting, fromBarrel name: String) async throws(DownloadError) {
        try await leave(selector.selector, barrel: name)
    }

    /// The URLs of a barrel's members, finished ones included, in the order in which they joined.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    public func urls(inBarrel name: String) async throws(DownloadError) -> [String] {
        try await typed { try await engine.snapshot { try $0.barrelURLs(name) } }
    }
}
