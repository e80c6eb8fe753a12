import FKMiddleware
import Foundation

/// Has requests carried out on a work path, whoever owns its engine: by becoming the engine for a moment when nobody
/// is, through the mailbox otherwise.
package struct EngineClient: Sendable {
    package let configure: Configure
    package let workPath: WorkPath
    /// How long an engine may take to answer before the request is withdrawn, in seconds.
    package var patience: Double = 15

    private static let pause: Duration = .milliseconds(40)

    package init(configure: Configure) {
        self.configure = configure
        workPath = WorkPath(configure.workPath)
    }

    /// - Returns: the reply of whoever carried it out, and what went wrong beside it.
    /// - Throws: when the work path cannot be used, or its engine does not answer.
    package func perform(_ request: EngineRequest) async throws -> (EngineReply, problems: [String]) {
        try workPath.open(create: true)
        let mailbox = Mailbox(workPath)
        var posted: MessageID?
        let deadline = ContinuousClock.now + .seconds(patience)
        while true {
            if let posted, let reply = try mailbox.readReply(posted) { return (reply, []) }
            if let engine = try Self.open(configure, scope: .chosen) {
                // The one before us may have done it with its last breath.
                if let posted, let reply = try mailbox.readReply(posted) {
                    await engine.close()
                    return (reply, [])
                }
                if let posted { try mailbox.withdraw(posted) }
                let reply = await engine.perform(request)
                let problems = await engine.takeProblems()
                await engine.close()
                return (reply, problems)
            }
            if posted == nil { posted = try mailbox.post(request) }
            guard ContinuousClock.now < deadline else {
                if let posted { try mailbox.withdraw(posted) }
                throw DownloadError(
                    .workPathBusy, "The engine of \(workPath.root) does not answer: is its process stopped?",
                    isRetryable: true)
            }
            try await Task.sleep(for: Self.pause)
        }
    }

    /// The engine of the work path, or nil while another process is it.
    static func open(_ configure: Configure, scope: Engine.Scope, chains: MiddlewareChains = .init()) throws -> Engine?
    {
        do {
            let transport = try configure.transportKind.makeTransport()
            return try Engine(configure: configure, scope: scope, transport: transport, chains: chains)
        } catch let error as DownloadError where error.code == .workPathBusy {
            return nil
        }
    }
}
