import FKCore
import FKEngine
import FKMiddleware

/// The middleware programs of a work path. They are stored there, and run by the process that runs its tasks, `fk` or an
/// application (unless `Configure.runsMiddlewarePrograms` is false).
///
/// ```swift
/// let sign = try MiddlewareProgram(name: "sign", stage: .request, arguments: ["/usr/local/bin/sign"])
/// try await downloader.programs.add(sign)
/// for program in try downloader.programs.list() { print(program.name, program.stage) }
/// try await downloader.programs.remove(named: "sign")
/// ```
///
/// They stand in the same chains as the middlewares in Swift, in the order of their priorities. What each decided is in
/// the task's history.
public struct MiddlewarePrograms: Sendable {
    let engine: any EngineAccess

    /// The programs in the order in which they were added.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk` if the list cannot be read.
    public func list() throws(DownloadError) -> [MiddlewareProgram] {
        try MiddlewareProgram.List(in: engine.workPath).programs
    }

    /// The programs that do not run, because they came with a work path from elsewhere: a copy, a backup, another disk. Their tasks
    /// fail with `.middleware`.
    ///
    /// - Throws: same as `list()`.
    public func untrusted() throws(DownloadError) -> [MiddlewareProgram] {
        try MiddlewareProgram.List(in: engine.workPath).untrusted(in: engine.workPath)
    }

    /// Lets the programs of `untrusted()` run. Failed tasks have to be retried.
    ///
    /// - Throws: `.noSpace` or `.disk`.
    public func trust() async throws(DownloadError) { _ = try await engine.perform(.line(.trustPrograms)) }

    /// Adds a program, for all requests and files from now on. The same program again changes nothing.
    ///
    /// - Throws: `.invalidArgument` if another program has its name, or if there are 100 already; `.noSpace` or `.disk`.
    public func add(_ program: MiddlewareProgram) async throws(DownloadError) {
        _ = try await engine.perform(.line(.addProgram(program)))
    }

    /// Removes a program. A run that has begun is not stopped.
    ///
    /// - Throws: `.notFound` if there is none of that name; `.noSpace` or `.disk`.
    public func remove(named name: String) async throws(DownloadError) {
        _ = try await engine.perform(.line(.removeProgram(name: name)))
    }
}

extension Downloader {
    /// The middleware programs of the work path.
    public var programs: MiddlewarePrograms { MiddlewarePrograms(engine: engine) }
}
