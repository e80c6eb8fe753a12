import FKMiddleware
import Foundation

/// The programs of a work path in the chains of its engine. Confined to the engine.
package final class RegisteredPrograms {
    private let workPath: WorkPath
    private let chains: MiddlewareChains
    private let isOn: Bool
    private var list: MiddlewareProgram.List
    /// The registered programs, and what takes them out of their chains.
    private var registered: [(program: MiddlewareProgram, remove: () -> Void)] = []
    /// Receives the ends of programs of the download stage, on any thread.
    private var onEnd: @Sendable (String, TaskContext, DownloadState, DownloadError?) -> Void = { _, _, _, _ in }

    /// Reads the programs.
    ///
    /// - Parameter isOn: false registers none.
    /// - Throws: the errors of `MiddlewareProgram.List.init(in:)`.
    init(_ workPath: WorkPath, _ chains: MiddlewareChains, isOn: Bool) throws(DownloadError) {
        self.workPath = workPath
        self.chains = chains
        self.isOn = isOn
        list = try MiddlewareProgram.List(in: workPath)
    }

    /// Registers the programs. It is called once.
    func connect(_ onEnd: @escaping @Sendable (String, TaskContext, DownloadState, DownloadError?) -> Void) {
        self.onEnd = onEnd
        list.programs.forEach(register)
    }

    /// Adds a program, for all requests from now on.
    ///
    /// - Returns: a line for people.
    func add(_ program: MiddlewareProgram) throws -> String {
        var changed = list
        let isNew = try changed.add(program)
        let home = ProgramHome(workPath)
        guard isNew || changed.untrusted(at: home).contains(program) else { return "\(program.name) is there already" }
        changed.trust(program.name, at: home)
        try changed.write(in: workPath)
        list = changed
        unregister { $0.name.isExactly(program.name) }
        register(program)
        return "\(program.name) added to the \(program.stage.rawValue) chain"
            + (isOn ? "" : ", which does not run programs")
    }

    /// Lets the programs run that came with a work path from elsewhere.
    ///
    /// - Returns: a line for people.
    func trust() throws -> String {
        let home = ProgramHome(workPath)
        let untrusted = list.untrusted(at: home)
        guard !untrusted.isEmpty else { return "every program may run already" }
        var changed = list
        for program in untrusted { changed.trust(program.name, at: home) }
        try changed.write(in: workPath)
        list = changed
        for program in untrusted {
            unregister { $0.name.isExactly(program.name) }
            register(program)
        }
        return "may run now: \(untrusted.map(\.name).joined(separator: ", "))"
    }

    /// Removes a program. A run that has begun is not stopped.
    ///
    /// - Returns: a line for people.
    func remove(named name: String) throws -> String {
        var changed = list
        try changed.remove(named: name)
        try changed.write(in: workPath)
        list = changed
        unregister { $0.name.isExactly(name) }
        return "\(name) removed"
    }

    /// Seconds for which closing waits for programs of the download stage.
    private static let patience: Duration = .seconds(30)

    /// Programs receive every change of state, including the last ones before the end of a command.
    func finish(
        _ callbacks: CallbackQueue, _ executor: EngineExecutor, isolation: isolated (any Actor)? = #isolation
    ) async {
        let lines = chains.programLines
        guard !lines.isEmpty else { return }
        await callbacks.drained()
        await withTaskGroup(of: Void.self) { group in
            for line in lines { group.addTask { await line.finish(patience: Self.patience) } }
        }
        // What they reported is on its way to the engine's thread.
        await withCheckedContinuation { continuation in executor.run { continuation.resume() } }
    }

    /// Removes the programs from the chains, which may be those of another engine next.
    func close() { unregister { _ in true } }

    private func register(_ program: MiddlewareProgram) {
        guard isOn else { return }
        guard !list.untrusted(in: workPath).contains(program) else {
            // Whatever its stage is, nothing is fetched without it.
            let place = chains.register(request: UntrustedProgram(program), for: program.scope)
            return registered.append((program, { [chains] in chains.request.remove(place) }))
        }
        let middleware = ProgramMiddleware(program) { [onEnd, name = program.name] in onEnd(name, $0, $1, $2) }
        let scope = program.scope
        let chains = chains
        let remove: () -> Void
        switch program.stage {
        case .request:
            let place = chains.register(request: middleware, for: scope)
            remove = { chains.request.remove(place) }
        case .download:
            let place = chains.register(download: middleware, for: scope)
            remove = { chains.download.remove(place) }
        case .head, .response:
            let place = chains.register(response: middleware, for: scope)
            remove = { chains.response.remove(place) }
        case .failure:
            let place = chains.register(failure: middleware, for: scope)
            remove = { chains.failure.remove(place) }
        }
        registered.append((program, remove))
    }

    private func unregister(_ isUnwanted: (MiddlewareProgram) -> Bool) {
        for (program, remove) in registered where isUnwanted(program) { remove() }
        registered.removeAll { isUnwanted($0.program) }
    }
}

/// Fails the tasks of a program that came with a work path from elsewhere, before anything is asked for.
private struct UntrustedProgram: RequestMiddleware {
    let name: String
    let priority: Int

    init(_ program: MiddlewareProgram) { (name, priority) = (program.name, program.priority) }

    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        throw DownloadError(
            .middleware,
            "\(name) was not run, because it came with a work path from elsewhere (copied, restored or moved). See it with 'fk "
                + "middleware list', and let it run here with 'fk middleware trust'.")
    }
}

extension MiddlewareChains {
    /// The running programs of the download stage.
    fileprivate var programLines: [ProgramLine] { download.ordered.compactMap { ($0 as? ProgramMiddleware)?.line } }

    /// Kills the programs of the download stage after one more second.
    func hurryPrograms() {
        let lines = programLines
        guard !lines.isEmpty else { return }
        Task.detached {
            try? await Task.sleep(for: .seconds(1))
            lines.forEach { $0.stop() }
        }
    }
}
