import FKMiddleware
import Foundation

extension MiddlewareProgram {
    /// A trial run of a program, to see its decision. It changes no task and sends no request.
    package struct Trial: Sendable, Hashable {
        /// The decision.
        package enum Result: String, Sendable, Hashable, CaseIterable {
            /// Exit status 0 and a valid answer.
            case accept
            /// Exit status 75.
            case retry
            /// Any other exit status.
            case reject
            /// The program did not do its work.
            case broken
        }

        /// The decision.
        package var result: Result
        /// The reason; nil for `.accept`. For `.broken` it completes the sentence "The program …".
        package var reason: String?
        /// The new URL, with secrets masked; nil if it stays.
        package var url: String?
        /// The lengths of the header values that it sets, by name; nil for a header that it removes. The values may be
        /// secrets.
        package var headers: [String: Int?] = [:]
        /// The new place of the file; nil if it stays.
        package var path: String?

        init(_ verdict: ProgramVerdict) {
            switch verdict {
            case .accept(let answer):
                result = answer.fail != nil ? .reject : answer.retry != nil ? .retry : .accept
                reason = answer.fail ?? answer.retry.map { $0.from.map(\.masked) ?? "in \($0.after) s" }
                url = answer.url.map(\.masked)
                headers = answer.headers.mapValues { $0?.count }
                path = answer.path
            case .retry(let reason): (result, self.reason) = (.retry, reason)
            case .reject(let reason): (result, self.reason) = (.reject, reason)
            case .broken(let reason, _): (result, self.reason) = (.broken, reason)
            }
        }
    }

    /// Runs the program with a made-up task: of the download stage at its completion, of the head stage with an answer of
    /// status 200 without fields, of the failure stage with the status 503.
    package func tried(_ task: TaskContext) async throws -> Trial {
        let question =
            switch stage {
            case .request: ProgramQuestion(URLRequest(url: task.originalURL), task)
            case .head:
                ProgramQuestion(
                    HTTPURLResponse(url: task.originalURL, statusCode: 200, httpVersion: nil, headerFields: nil), task)
            case .failure:
                ProgramQuestion(
                    AttemptFailure(
                        task: task, error: DownloadError(.httpStatus, "The server answered 503.", status: 503)))
            case .download, .response: ProgramQuestion(.complete, nil, task)
            }
        return Trial(try await ProgramHost.shared.ask(self, question))
    }

    /// Runs the program, of the response stage, with a file, which it may move.
    package func tried(_ task: TaskContext, file: String) async throws -> Trial {
        let file = URL(fileURLWithPath: file)
        let response = DownloadResponse(task: task, fileURL: file)
        return Trial(try await ProgramHost.shared.ask(self, response, file: file))
    }
}
