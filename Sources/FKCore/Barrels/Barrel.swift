import FKEngine
import FKMiddleware
import Foundation

/// A barrel of a downloader: a named group of tasks with one sum.
///
/// ```swift
/// let barrel = try await downloader.barrel("books")
/// for result in try await barrel.add(urls, to: folder) { … }
/// for await sum in barrel.progress { print(sum.fraction ?? 0) }
/// ```
///
/// It is a handle: the barrel itself is on disk. Two handles of one barrel are equal. A handle keeps its downloader in
/// memory. Safe to use from any thread.
public struct Barrel: TaskSelecting, Hashable, Identifiable {
    /// The barrel's name.
    public let name: String
    package let downloader: Downloader
    /// Same as `name`.
    public var id: String { name }

    init(_ name: String, in downloader: Downloader) {
        self.name = name
        self.downloader = downloader
    }

    /// The members.
    public var selector: TaskSelector { .barrel(name) }

    private var control: Control { downloader.control }
    private var messager: Messager { downloader.messager }

    // MARK: Members

    /// Adds tasks as members and queues them, each as `Downloader.add(_:to:named:checksum:queued:)`. An invalid address is a failure
    /// in its place and does not affect the others. Only the results tell of it: it is no member of the barrel.
    ///
    /// - Parameters:
    ///   - files: addresses, or builders.
    ///   - folder: the folder for the files, created if missing; nil, the default, for those of the builders, else inside the work
    ///     path.
    /// - Returns: one result for each file, in order: the task, or the error why there is none.
    /// - Throws: `.cancelled` for a closed downloader.
    public func add(
        _ files: [some Downloadable], to folder: URL? = nil
    ) async throws(DownloadError) -> [Result<DownloadTask, DownloadError>] {
        try await downloader.add(files, to: folder, barrel: name, queued: true)
    }

    /// Lets tasks join that exist already, and changes nothing else about them. A URL without a task joins when its task is made.
    /// The barrel is created again if it is gone.
    ///
    /// - Returns: the number of tasks that joined now.
    /// - Throws: `.invalidURL` for an invalid URL, `.cancelled` for a closed downloader.
    @discardableResult
    public func join(_ selector: some TaskSelecting) async throws(DownloadError) -> Int {
        try await messager.join([selector.selector], barrel: name)
    }

    /// Removes the selected tasks from the barrel. The tasks are kept.
    ///
    /// - Throws: `.notFound` if none of them is a member or the barrel is gone, `.invalidURL` for an invalid URL.
    public func remove(_ selector: some TaskSelecting) async throws(DownloadError) {
        try await messager.leave(selector.selector, barrel: name)
    }

    /// Deletes the barrel. Its tasks are kept.
    ///
    /// - Throws: `.notFound` if it is gone.
    public func delete() async throws(DownloadError) { try await messager.deleteBarrel(name) }

    /// The members in the order in which they joined; empty if the barrel is gone.
    public var members: [DownloadTask] {
        get async { await memberInfos.map { DownloadTask($0.id, $0.url, in: downloader) } }
    }

    /// The failed members with their errors, in the order in which they joined.
    public var failures: [(task: DownloadTask, error: DownloadError)] {
        get async {
            await memberInfos.compactMap { info in
                guard info.state == .error, let error = info.error else { return nil }
                return (DownloadTask(info.id, info.url, in: downloader), error)
            }
        }
    }

    /// The members as they are now, in the order in which they joined; empty if the barrel is gone.
    public var memberInfos: [DownloadInfo] { get async { await messager.all(.barrel(name)) } }

    /// The finished files of the complete members, in the order in which the members joined. A file that is gone is left out.
    public var files: [URL] {
        get async {
            await memberInfos.compactMap { info in
                info.state == .complete && !info.hasLostFile ? info.path.map { URL(fileURLWithPath: $0) } : nil
            }
        }
    }

    // MARK: Following

    /// The sum as it is now. Where all members are complete, their files are looked for.
    ///
    /// - Throws: `.notFound` if the barrel is gone.
    public var info: BarrelInfo {
        get async throws(DownloadError) {
            await messager.lookingForFiles(try await typed { try await messager.barrelInfo(name) })
        }
    }

    /// The sums as an asynchronous sequence. Every reader receives the first and the last sum; a slow one misses some in
    /// between.
    ///
    /// It ends when all members are complete, failed, cancelled or gone. While one is suspended it waits. For an empty
    /// barrel it ends after one sum, and for a barrel that is gone without one.
    public var progress: some AsyncSequence<BarrelInfo, Never> & Sendable {
        messager.barrelInfos(name).map { [messager] in await messager.lookingForFiles($0) }
    }

    /// The members as they end, complete or failed, each once: those that have ended already first. Read `file` of a
    /// member for its file or its error.
    ///
    /// It ends as `progress` does. Cancelled members are not among them.
    public var ended: some AsyncSequence<DownloadTask, Never> & Sendable { EndedMembers(of: self) }

    // MARK: Verbs

    /// Stops running and waiting members and keeps their bytes.
    ///
    /// - Returns: same as every verb here: one result for each member; empty for an empty barrel.
    /// - Throws: same as every verb here: `.notFound` if the barrel is gone, `.cancelled` for a closed downloader.
    @discardableResult
    public func suspend() async throws(DownloadError) -> [VerbResult] { try await give(control.suspend) }

    /// Resumes suspended members, as soon as slots are free.
    @discardableResult
    public func resume() async throws(DownloadError) -> [VerbResult] { try await give(control.resume) }

    /// Suspends running and waiting members, and resumes or queues the others. Complete ones stay.
    @discardableResult
    public func toggle() async throws(DownloadError) -> [VerbResult] { try await give(control.toggle) }

    /// Stops members and deletes their unfinished bytes.
    @discardableResult
    public func cancel() async throws(DownloadError) -> [VerbResult] { try await give(control.cancel) }

    /// Queues failed and cancelled members again, with a fresh count of attempts.
    @discardableResult
    public func retry() async throws(DownloadError) -> [VerbResult] { try await give(control.retry) }

    /// Forgets all members and deletes every file they wrote, also finished ones. The empty barrel stays.
    @discardableResult
    public func trash() async throws(DownloadError) -> [VerbResult] { try await give(control.trash) }

    /// Forgets all members and keeps their finished files. Unfinished bytes are deleted. The empty barrel stays.
    @discardableResult
    public func forget() async throws(DownloadError) -> [VerbResult] { try await give(control.forget) }

    private func give(
        _ verb: (TaskSelector) async throws -> [VerbResult]
    ) async throws(DownloadError) -> [VerbResult] {
        do throws(DownloadError) {
            return try await typed { try await verb(.barrel(name)) }
        } catch {
            // A verb for a selector without tasks is an error, an empty barrel is none.
            guard error.code == .notFound, try await info.total == 0 else { throw error }
            return []
        }
    }

    // MARK: Identity

    /// Compares name and downloader.
    public static func == (one: Barrel, other: Barrel) -> Bool {
        one.name.isExactly(other.name) && one.downloader === other.downloader
    }

    /// Hashes the bytes of the name.
    public func hash(into hasher: inout Hasher) { ExactText(name).hash(into: &hasher) }
}

extension Downloader {
    /// A barrel, created if missing.
    ///
    /// - Throws: `.invalidArgument` for an invalid name, `.cancelled` for a closed downloader.
    public func barrel(_ name: String) async throws(DownloadError) -> Barrel {
        _ = try await messager.join([], barrel: name)
        return Barrel(name, in: self)
    }
}
