import FKMiddleware

/// An error of the RPC, with aria2's codes.
package struct RPCError: Error, Hashable, Sendable {
    /// 1 for a method that failed; the codes of JSON-RPC 2.0 for a request that is none.
    package var code: Int
    /// A sentence for people. Clients compare some of aria2's, such as `Unauthorized`, word for word.
    package var message: String

    package init(_ message: String, code: Int = 1) {
        self.code = code
        self.message = message
    }

    package init(_ error: DownloadError) { self.init(error.text) }

    /// The body is not JSON.
    package static let parse = RPCError("Parse error.", code: -32700)
    /// The JSON is no request.
    package static let invalidRequest = RPCError("Invalid Request.", code: -32600)
    /// The parameters are not an array.
    package static let invalidParams = RPCError("Invalid params.", code: -32602)
    /// The secret is missing or wrong.
    package static let unauthorized = RPCError("Unauthorized")

    package static func noSuchMethod(_ name: String) -> RPCError {
        RPCError("No such method: \(name)", code: -32601)
    }

    package static func tooLarge(limit: Int) -> RPCError {
        RPCError("The request is too large: at most \(limit) bytes are accepted.", code: -32600)
    }

    /// The answer to a request that was not read.
    package var answer: [UInt8] { JSON.members(["id": .null, "jsonrpc": "2.0", "error": json]).bytes }

    /// The HTTP status of an answer with this error: the client's fault, so never 500. Clients show an error only if the status is
    /// one too.
    package var status: Int {
        switch code {
        case -32601: 404
        default: 400
        }
    }

    var json: JSON { .members(["code": JSON(code), "message": .string(message)]) }
}
