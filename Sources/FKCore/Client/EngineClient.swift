import FKEngine
import FKMiddleware
import Foundation

/// Performs requests on a work path, whichever process owns its engine. If no process does, it becomes the engine for
/// the request. Otherwise it posts the request to the mailbox.
package struct EngineClient: Sendable {
    /// The settings of the engine that this process may become.
    package let configure: Configure
    package let workPath: WorkPath
    /// The seconds without a sign of life from the engine after which the request is withdrawn. The default is 15. A
    /// live and busy engine is waited for.
    package var patience: Double = 15
    /// False leaves requests in the mailbox while no process owns the work path. The default is true.
    var opensEngine = true
    /// Called when the engine of another process has shown no sign of life for `EngineWatch.limit` seconds, and when
    /// it shows one again.
    package var onNews: @Sendable (EngineWatch.News, EngineLock.Holder?) -> Void = { _, _ in }

    private static let pause: Duration = .milliseconds(40)

    package init(configure: Configure) {
        self.configure = configure
        workPath = WorkPath(configure)
    }

    /// Performs one request.
    ///
    /// - Returns: the engine's reply, and the problems that occurred beside it.
    /// - Throws: `DownloadError` if the work path cannot be used or its engine does not answer.
    package func perform(_ request: EngineRequest) async throws -> (EngineReply, problems: [String]) {
        try await perform(EngineMessage(request))
    }

    /// Performs one request of any kind.
    ///
    /// - Throws: same as with a request.
    package func perform(_ request: EngineMessage) async throws -> (EngineReply, problems: [String]) {
        try workPath.open(create: true)
        var replies: [EngineReply] = []
        var problems: [String] = []
        for message in request.messages {
            let (reply, others) = try await performMessage(message) { _ in nil }
            problems += others
            // The next portion would fail for the same reason.
            if case .failed = reply { return (reply, problems) }
            replies.append(reply)
        }
        return (try EngineReply(pages: replies), problems)
    }

    /// Adds tasks. While no process owns the work path, this one does until the last task is added.
    ///
    /// - Parameters:
    ///   - own: limits for the tasks; nil, the default, for none.
    ///   - replied: receives the replies, and the problems that occurred beside them. After a `.failed` one none follows.
    /// - Throws: same as `perform`; `.disk` if the list cannot be read.
    package func add(
        _ addition: TaskAddition, own: OwnLimits? = nil, replied: (EngineReply, [String]) -> Void
    ) async throws {
        try workPath.open(create: true)
        while !addition.tasks.isEmpty {
            if let engine = try Self.open(configure) {
                let result = await add(addition, own: own, to: engine, replied: replied)
                await engine.close()
                guard try result.get() else { return }
            } else if let request = try addition.next(isMessage: true) {
                for message in EngineMessage(request, own: own).messages {
                    let (reply, problems) = try await performMessage(message) { _ in nil }
                    replied(reply, problems)
                    // The next portion would fail for the same reason.
                    if case .failed = reply { return }
                }
            }
        }
    }

    /// Applies a verb to the selected tasks. While no process owns the work path, this one does, and passes on the results a
    /// portion at a time.
    ///
    /// - Parameters:
    ///   - forAll: true makes `resume` also queue cancelled and failed tasks, if the selector is `.all`.
    ///   - replied: receives the replies in order, and the problems that occurred beside them.
    /// - Throws: same as `perform`.
    package func apply(
        _ verb: Verb, to selector: TaskSelector, forAll: Bool,
        replied: @escaping @Sendable (EngineReply, [String]) -> Void
    ) async throws {
        try workPath.open(create: true)
        guard let engine = try Self.open(configure) else {
            let (reply, problems) = try await perform(
                forAll ? EngineMessage(.resumeAll) : EngineMessage(.verb(verb, selector)))
            return replied(reply, problems)
        }
        do {
            try await engine.apply(verb, to: selector, forAll: forAll) { replied(.verbs($0), []) }
        } catch {
            replied(.failed(DownloadError(wrapping: error, code: .disk, message: "The request failed.")), [])
        }
        let problems = await engine.takeProblems().map(\.message)
        await engine.close()
        if !problems.isEmpty { replied(.verbs([]), problems) }
    }

    /// - Returns: false after a failure.
    private func add(
        _ addition: TaskAddition, own: OwnLimits?, to engine: Engine, replied: (EngineReply, [String]) -> Void
    ) async -> Result<Bool, any Error> {
        do {
            while let request = try addition.next(isMessage: false) {
                let reply = await engine.answer(EngineMessage(request, own: own))
                replied(reply, await engine.takeProblems().map(\.message))
                if case .failed = reply { return .success(false) }
            }
            return .success(true)
        } catch {
            return .failure(error)
        }
    }

    /// Performs one request that fits into the mailbox.
    ///
    /// - Parameter here: performs the request in this process and returns the reply; nil if another process owns the
    ///   work path. Its parameter is the id of the request in the mailbox, if it is there.
    func performMessage(
        _ request: EngineMessage, here: @Sendable (MessageID?) async throws -> EngineReply?
    ) async throws -> (EngineReply, problems: [String]) {
        let mailbox = Mailbox(workPath)
        var inquiry: Inquiry?
        do {
            return try await performMessage(request, mailbox, &inquiry, here: here)
        } catch {
            // The caller receives no answer, so the request is withdrawn.
            if let inquiry { _ = try? mailbox.withdraw(inquiry.id) }
            throw error
        }
    }

    private func performMessage(
        _ request: EngineMessage, _ mailbox: Mailbox, _ inquiry: inout Inquiry?,
        here: @Sendable (MessageID?) async throws -> EngineReply?
    ) async throws -> (EngineReply, problems: [String]) {
        var watch = EngineWatch(interval: 0.04)
        while true {
            if let reply = try inquiry?.answer(mailbox, now: EngineWatch.now) { return (reply, []) }
            if let reply = try await here(inquiry?.id) { return (reply, []) }
            if opensEngine, let engine = try Self.open(configure) {
                let reply = await engine.answer(request, posted: inquiry?.id)
                let problems = await engine.takeProblems().map(\.message)
                await engine.close()
                return (reply, problems)
            }
            if inquiry == nil { inquiry = Inquiry(try mailbox.post(request)) }
            let now = EngineWatch.now
            if let news = watch.look(EngineLock.content(workPath), now: now) {
                onNews(news, EngineLock.holder(workPath))
            }
            if watch.silence(now) >= patience { throw silent(watch.silence(now)) }
            try await Task.sleep(for: Self.pause)
        }
    }

    private func silent(_ seconds: Double) -> DownloadError {
        let process = EngineLock.holder(workPath).map { "process \($0.pid) on \($0.host)" } ?? "its process"
        return DownloadError(
            .workPathBusy,
            "The engine of \(workPath.root), \(process), has shown no sign of life for \(Int(seconds)) s: it is stopped or "
                + "hung. The request was withdrawn. Continue or end that process, then ask again.", isRetryable: true)
    }

    /// The engine of the work path, which runs no task; nil if another process owns it.
    private static func open(_ configure: Configure) throws -> Engine? {
        do {
            return try Engine(
                configure: configure, scope: .chosen, transport: configure.makeTransport())
        } catch let error as DownloadError where error.code == .workPathBusy {
            return nil
        }
    }
}
