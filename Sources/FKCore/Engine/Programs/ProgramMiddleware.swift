import FKMiddleware
import Foundation

extension MiddlewareProgram {
    /// The program as a middleware of this process. Register it in the chain of its `stage`; in the others it does
    /// nothing.
    ///
    /// ```swift
    /// let verify = try MiddlewareProgram(name: "verify", stage: .response, arguments: ["/usr/local/bin/verify"])
    /// chains.register(response: verify.middleware(), for: .barrel("releases"))
    /// ```
    ///
    /// The program reads one JSON object and may write one. Its exit status decides: 0 accepts, 75 asks for a retry, any
    /// other refuses with the first line of its standard error as the reason. A program that takes longer than its time
    /// limit, writes more than 1 MiB or anything but a JSON object, is missing, crashes, or leaves a process behind that
    /// keeps its output open fails the task. It is killed with its process group. Its environment is `FK_STAGE`,
    /// `FK_TASK_ID`, `PATH`, `HOME`, `LANG` and `TMPDIR`.
    ///
    /// Programs of each stage share four slots for each processor, those of the download stage two.
    ///
    /// - Parameter onEnd: called after each run of the download stage, with the error if there was one. Nobody else hears of
    ///   it. The default does nothing.
    public func middleware(
        onEnd: @escaping @Sendable (TaskContext, DownloadState, DownloadError?) -> Void = { _, _, _ in }
    ) -> some RequestMiddleware & DownloadMiddleware & ResponseMiddleware & RetryMiddleware {
        ProgramMiddleware(self, onEnd: onEnd)
    }
}

/// A middleware that is a program in any language (`MiddlewareProgram.middleware`).
package struct ProgramMiddleware: RequestMiddleware, DownloadMiddleware, ResponseMiddleware, RetryMiddleware {
    package let program: MiddlewareProgram
    package var name: String { program.name }
    package var priority: Int { program.priority }
    let line: ProgramLine
    private let host: ProgramHost

    init(
        _ program: MiddlewareProgram, host: ProgramHost = .shared,
        onEnd: @escaping @Sendable (TaskContext, DownloadState, DownloadError?) -> Void = { _, _, _ in }
    ) {
        self.program = program
        self.host = host
        line = ProgramLine(program, host, onEnd: onEnd)
    }

    // MARK: Requests

    /// Asks the program before a request.
    ///
    /// - Throws: `.middleware`, which can be retried if the program asks for it, or `.rejected`.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        try await change(request, for: task).request
    }

    /// The changed request, and the names of the fields that the program has set.
    package func change(
        _ request: URLRequest, for task: TaskContext
    ) async throws -> (request: URLRequest, fields: [String]) {
        guard program.stage == .request else { return (request, []) }
        let question = ProgramQuestion(request, task)
        let echo = EchoMasking(
            request: request, secretHeaders: Set((request.allHTTPHeaderFields ?? [:]).keys.map { $0.lowercased() }))
        let verdict = try await host.ask(program, question) { echo.mask($0, url: nil) }
        if let error = verdict.error(of: name, "refused the request") { throw error }
        guard case .accept(let answer) = verdict else { return (request, []) }
        var changed = request
        var notes: [String] = []
        if let text = answer.url, let url = URL(string: text), url != request.url {
            changed.url = url
            notes.append("the URL")
        }
        let fields = answer.headers.filter { name, value in request.value(forHTTPHeaderField: name) != value }
        for (name, value) in fields { changed.setValue(value, forHTTPHeaderField: name) }
        if !fields.isEmpty {
            notes.append(
                (fields.count == 1 ? "the header " : "the headers ") + fields.keys.sorted().joined(separator: ", "))
        }
        MiddlewareCall.record(
            name, notes.isEmpty ? "accepted the request" : "changed \(notes.joined(separator: " and "))")
        return (changed, fields.compactMap { $1 == nil ? nil : $0 })
    }

    // MARK: Heads

    /// Asks the program about the head of a response.
    ///
    /// - Throws: `RetryRequest`, `.rejected` or `.middleware`.
    package func accept(_ head: HTTPURLResponse, for task: TaskContext) async throws {
        guard program.stage == .head else { return }
        let verdict = try await host.ask(program, ProgramQuestion(head, task))
        switch verdict {
        case .retry(let reason): throw RetryRequest(reason: reason)
        case .accept(let answer):
            if let retry = answer.retry {
                throw RetryRequest(reason: "by its head", delay: Duration(inSeconds: retry.after))
            }
            if let reason = answer.fail, let error = ProgramVerdict.reject(reason).error(of: name, Self.refused) {
                throw error
            }
            MiddlewareCall.record(name, "accepted the head")
        case .reject, .broken:
            if let error = verdict.error(of: name, Self.refused) { throw error }
        }
    }

    private static let refused = "refused the file by its head"

    // MARK: Failures

    /// Asks the program about a failed attempt. A program that does not work leaves the decision to the rules for retries.
    package func decide(_ failure: AttemptFailure) async -> RetryDecision {
        guard program.stage == .failure else { return .useRules }
        do {
            let verdict = try await host.ask(program, ProgramQuestion(failure))
            switch verdict {
            case .retry: return .retry(after: .zero)
            case .reject(let reason): return .fail(failed(failure.error, reason))
            case .broken(let text, _):
                MiddlewareCall.record(name, text)
                return .useRules
            case .accept(let answer):
                if let reason = answer.fail { return .fail(failed(failure.error, reason)) }
                guard let retry = answer.retry else { return .useRules }
                if let url = retry.from.flatMap({ URL(string: $0) }) { return .retry(from: url) }
                return .retry(after: Duration(inSeconds: retry.after))
            }
        } catch {
            return .useRules
        }
    }

    /// The failure with the program's reason before the server's.
    private func failed(_ error: DownloadError, _ reason: String) -> DownloadError {
        var error = error
        error.underlying = error.underlying ?? error.message
        error.message = "The middleware program \(name) fails the task: \(reason)"
        error.isRetryable = false
        return error
    }

    // MARK: States

    /// Queues a new state for the program and returns. The runs for one task happen in order.
    package func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {
        if program.stage == .download { line.add(task, state, error) }
    }

    // MARK: Files

    /// Asks the program about a finished file. It ignores a failed task.
    ///
    /// If the program answers with another `path`, the file's old place is removed once the task's record contains the new
    /// one, in case the program has left it there.
    ///
    /// - Throws: `RetryRequest`, `.rejected` or `.middleware`.
    package func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        guard program.stage == .response, response.error == nil, let file = response.fileURL else { return response }
        let verdict = try await host.ask(program, response, file: file)
        if case .retry(let reason) = verdict { throw RetryRequest(reason: reason) }
        if let error = verdict.error(of: name, "rejected the file") { throw error }
        guard case .accept(let answer) = verdict else { return response }
        guard let path = answer.path, !path.isExactly(file.path) else {
            MiddlewareCall.record(name, "accepted the file")
            return response
        }
        var changed = response
        changed.fileURL = try place(path, of: file)
        // The program may have linked or copied the file, so that a kill loses nothing.
        if file.path.existsOnDisk { changed.leftBehind.append(file) }
        MiddlewareCall.record(name, "moved the file to \(path)")
        return changed
    }

    /// The file's new place. While the file is at its old place, too, the other one has to be as long: otherwise it is not a
    /// copy, and the only file with the bytes would be removed.
    private func place(_ path: String, of file: URL) throws(DownloadError) -> URL {
        let url = URL(fileURLWithPath: path).standardizedFileURL
        let said = "The middleware program \(name) says that it has moved the file to \(path), but"
        guard let found = FileIdentity(path: url.path) else {
            throw DownloadError(.middleware, "\(said) there is no file.")
        }
        var status = stat()
        guard lstat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw DownloadError(.middleware, "\(said) that is not a regular file.")
        }
        if let old = FileIdentity(path: file.path), found.length != old.length {
            throw DownloadError(
                .middleware, "\(said) the file there has \(found.length.plural("byte")), not \(old.length).")
        }
        return url
    }
}

extension ProgramHost {
    /// Asks a program.
    ///
    /// - Parameter mask: masks the secrets that are known, in the reason of a refusal. The default masks none.
    func ask(
        _ program: MiddlewareProgram, _ question: ProgramQuestion, mask: (String) -> String = { $0 }
    ) async throws -> ProgramVerdict {
        try await ask(program, question.id, mask: mask) { question }
    }

    /// Asks a program about a finished file, whose digest is computed first.
    func ask(_ program: MiddlewareProgram, _ response: DownloadResponse, file: URL) async throws -> ProgramVerdict {
        let url = URLRequest(url: response.task.originalURL)
        let echo = EchoMasking(request: url, secretHeaders: [])
        return try await ask(program, response.task.id.hex, mask: { echo.mask($0, url: nil) }) {
            ProgramQuestion(response, path: file.path, sha256: try Digester.hex(ofFile: file, .sha256))
        }
    }

    /// Asks a program.
    ///
    /// - Parameters:
    ///   - id: the digits of the task's id.
    ///   - question: makes the question once there is a slot.
    func ask(
        _ program: MiddlewareProgram, _ id: String, mask: (String) -> String,
        _ question: @escaping @Sendable () throws -> ProgramQuestion
    ) async throws -> ProgramVerdict {
        let result: ProgramResult
        do {
            result = try await run(program.stage) { [stage = program.stage] in
                ProgramCall(
                    path: try program.locate(), arguments: program.arguments,
                    environment: ProgramEnvironment.variables(stage, id, inherited: ProgramEnvironment.inherited),
                    directory: program.directory, input: try question().json, timeLimit: program.timeLimit)
            }
        } catch let error as DownloadError where error.code == .middleware {
            result = ProgramResult(end: .notStarted(error.message, isRetryable: false))
        }
        return ProgramVerdict(result, program.stage, timeLimit: program.timeLimit, mask: mask)
    }
}
