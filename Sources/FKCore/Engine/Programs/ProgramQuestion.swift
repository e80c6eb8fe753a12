import FKMiddleware
import Foundation

/// The JSON object that a middleware program reads from its standard input.
struct ProgramQuestion: Encodable, Sendable, Hashable {
    /// Why a task has failed.
    struct Failure: Encodable, Sendable, Hashable {
        var code: String
        var message: String
    }

    var stage: MiddlewareProgram.Stage
    /// 64 hexadecimal digits.
    var id: String
    /// The URL of the request; for the other stages the task's own.
    var url: String
    /// The fields of the request, or of the server's response with lower-case names; empty for the download stage.
    var headers: [String: String]
    var attempt: Int
    var barrels: [String]
    var attributes: [String: String]
    /// For the download stage only.
    var state: DownloadState?
    /// For the state `error` and for a failed attempt.
    var error: Failure?
    /// The status of the response, for the stages head and failure.
    var status: Int?
    /// The number of bytes of the file that are there, for the stage failure only.
    var received: Int64?
    /// For the response stage only.
    var path: String?
    /// The SHA-256 of the file, for the response stage only.
    var digest: [String: String]?

    private init(_ stage: MiddlewareProgram.Stage, _ task: TaskContext, url: String, headers: [String: String] = [:]) {
        self.stage = stage
        id = task.id.hex
        self.url = url
        self.headers = headers
        attempt = task.attempt
        barrels = task.barrels
        attributes = task.attributes
    }

    /// The question before a request.
    init(_ request: URLRequest, _ task: TaskContext) {
        self.init(
            .request, task, url: request.url?.absoluteString ?? task.originalURL.absoluteString,
            headers: request.allHTTPHeaderFields ?? [:])
    }

    /// The message about a change of state.
    init(_ state: DownloadState, _ error: DownloadError?, _ task: TaskContext) {
        self.init(.download, task, url: task.originalURL.absoluteString)
        self.state = state
        self.error = error.map { Failure(code: $0.code.rawValue, message: $0.message) }
    }

    /// The question about the head of a response.
    init(_ head: HTTPURLResponse?, _ task: TaskContext) {
        self.init(.head, task, url: task.originalURL.absoluteString, headers: Self.fields(of: head))
        status = head?.statusCode
    }

    /// The question about a failed attempt.
    init(_ failure: AttemptFailure) {
        self.init(
            .failure, failure.task, url: failure.task.originalURL.absoluteString,
            headers: Self.fields(of: failure.response))
        error = Failure(code: failure.error.code.rawValue, message: failure.error.message)
        status = failure.error.status
        received = failure.received
    }

    private static func fields(of response: HTTPURLResponse?) -> [String: String] {
        var fields: [String: String] = [:]
        for (name, value) in response?.allHeaderFields ?? [:] {
            if let name = name as? String, let value = value as? String { fields[name.lowercased()] = value }
        }
        return fields
    }

    /// The question about a finished file.
    ///
    /// - Parameter sha256: hexadecimal digits.
    init(_ response: DownloadResponse, path: String, sha256: String) {
        self.init(
            .response, response.task, url: response.task.originalURL.absoluteString,
            headers: Self.fields(of: response.response))
        self.path = path
        digest = [Checksum.Algorithm.sha256.rawValue: sha256]
    }

    /// The object in one line, with a line feed.
    var json: [UInt8] {
        get throws { try StoreJSON.encode(self) + [0x0a] }
    }
}
