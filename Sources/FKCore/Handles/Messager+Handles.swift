import FKMiddleware
import Foundation

/// What handles and models need beside the public questions.
extension Messager {
    /// The infos of a task without an end: also those after it has ended and was queued again. A slow reader receives the
    /// newest. It ends at once if the downloader is closed.
    func changes(_ selector: TaskSelector) -> AsyncStream<DownloadInfo> {
        sequence(.firstAndNewest) { engine, yield, _ in try await engine.observe(selector.selector, end: nil, yield) }
    }

    /// The sums of a barrel without an end; otherwise like `changes(_:)`.
    func changes(ofBarrel name: String) -> AsyncStream<BarrelInfo> {
        sequence(.firstAndNewest) { engine, yield, _ in try await engine.observeBarrel(name, end: nil, yield) }
    }

    /// The sum with the number of files that are gone, which is counted where all members are complete.
    func lookingForFiles(_ sum: BarrelInfo) async -> BarrelInfo {
        guard sum.isComplete else { return sum }
        var sum = sum
        let lost = await all(.barrel(sum.name)).reduce(0) { $0 + ($1.hasLostFile ? 1 : 0) }
        if lost > 0 { sum.lostFiles = lost }
        return sum
    }

    /// Adds the task of a builder, or toggles the known one as `Control.toggle`, and registers callbacks: the one call of
    /// TTDownloadManager, for a button that starts, pauses and resumes. A complete task whose file is there does not change;
    /// its callbacks report `.complete` and the file at once. If the file is gone, it is fetched again.
    ///
    /// - Parameters:
    ///   - builder: describes the file. A known task keeps its options, whatever the builder says.
    ///   - queue: same as the other parameters: as for `addCallbacks`.
    /// - Returns: the registration of the callbacks. Releasing it ends them, so assigning that of the next call to the same variable
    ///   replaces them.
    /// - Throws: the errors of `Builder.prepare(in:)` and of `Control.toggle`.
    public func toggle(
        orAdd builder: Builder, on queue: DispatchQueue? = nil,
        stateChanged: (@Sendable (DownloadState) -> Void)? = nil,
        progress: (@Sendable (_ received: Int64, _ expected: Int64?, _ fraction: Double?) -> Void)? = nil,
        completion: (@Sendable (Result<URL, DownloadError>) -> Void)? = nil
    ) async throws(DownloadError) -> Registration {
        let id = engine.workPath.places.id(of: builder.description)
        let known = await info(.id(id))
        let isGone = known?.state == .complete && known?.path.map { access($0, F_OK) != 0 } ?? true
        if known == nil || isGone {
            let added = try await engine.perform(.add(tasks: [builder.description], barrel: nil, run: true))
            if let error = added[0].error { throw error }
        } else if known?.state != .complete {
            _ = try await engine.perform(.toggle(.id(id)))
        }
        // Behind the verb, so that an earlier failure is not reported again.
        return try await addCallbacks(
            .id(id), on: queue, stateChanged: stateChanged, progress: progress, completion: completion)
    }

    /// Removes the selected tasks from a barrel. The tasks are kept.
    ///
    /// - Parameter selector: `.all` means all members, another barrel the members that both have.
    /// - Throws: `.notFound` if there is no such barrel or none of the tasks is in it, `.invalidURL` for an invalid URL.
    public func remove(_ selector: some TaskSelecting, fromBarrel name: String) async throws(DownloadError) {
        _ = try await typed {
            let texts: [String] =
                switch selector.selector.kind {
                case .url(let url): [url]
                case .id(let id): [id.hex]
                case .barrel, .state, .all:
                    try await engine.snapshot { [selector = selector.selector] source in
                        try source.infos(selector == .all ? .barrel(name) : selector)
                    }.map(\.id.hex)
                }
            return try await engine.perform(.removeFromBarrel(name: name, urls: texts))
        }
    }
}
