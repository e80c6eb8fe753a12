import FKCore
import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One thing that every `Transport` must do, as a test that whoever writes a transport can run against it:
///
/// ```swift
/// @Test(arguments: TransportConformance.cases(for: [.trustOptions, .http2]))
/// func conformance(_ test: TransportConformance) async throws {
///     try await test.run { MyTransport() }
/// }
/// ```
package struct TransportConformance: Sendable, CustomStringConvertible {
    /// What not every transport can offer.
    package enum Feature: Sendable, Hashable, CaseIterable {
        /// `caFile`, `insecure`.
        case trustOptions
        case proxyOption
        case http2
        /// Headers are checked as they were sent, not as a library cleaned them.
        case strictHeaders
        /// Header sizes are capped as the options say.
        case headerCaps
        /// A connection that ends without TLS close_notify is noticed.
        case closeNotify
    }

    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    package typealias Body = @Sendable (Context) async throws -> Void

    package let name: String
    package let needs: Set<Feature>
    private let body: Body

    package var description: String { name }

    init(_ name: String, needs: Set<Feature> = [], _ body: @escaping Body) {
        self.name = name
        self.needs = needs
        self.body = body
    }

    /// Every case that needs no more than these features.
    package static func cases(for features: Set<Feature>) -> [TransportConformance] {
        (lifeCycle + flow + bodies + heads + redirects + requests + failures + security)
            .filter { $0.needs.isSubset(of: features) }
    }

    /// Runs the case with a transport of its own.
    ///
    /// - Throws: `Failure` with what went wrong.
    package func run(_ makeTransport: @Sendable () -> any Transport) async throws {
        let transport = makeTransport()
        defer { transport.shutdown() }
        try await body(Context(transport: transport))
    }
}

extension TransportConformance {
    /// What a case works with.
    package struct Context: Sendable {
        package let transport: any Transport

        /// Options for tests: time-outs that a busy machine does not reach, and never the environment's proxy.
        package static var options: TransportOptions {
            var options = TransportOptions()
            options.connectTimeout = .seconds(50)
            options.stallTimeout = .seconds(50)
            options.proxy = ""
            return options
        }

        package static func request(
            _ url: String, method: String = "GET", headers: KeyValuePairs<String, String> = [:], body: [UInt8]? = nil,
            secret: Set<String> = [], options: TransportOptions = Self.options
        ) throws -> TransportRequest {
            guard let target = URL(string: url) else { throw Failure(description: "\(url) is not a URL") }
            var request = URLRequest(url: target)
            request.httpMethod = method
            for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
            if let body { request.httpBody = Data(body) }
            return TransportRequest(urlRequest: request, secretHeaders: secret, options: options)
        }

        /// Starts a request, waits for its end, and checks that the order of calls was right.
        package func perform(
            _ request: TransportRequest, handler: RecordingHandler = RecordingHandler()
        ) async throws -> RecordingHandler.Record {
            _ = transport.start(request, handler: handler)
            return try await end(of: handler)
        }

        package func get(_ url: String, options: TransportOptions = Self.options) async throws
            -> RecordingHandler.Record
        {
            try await perform(try Self.request(url, options: options))
        }

        package func end(of handler: RecordingHandler) async throws -> RecordingHandler.Record {
            let record = await handler.finished()
            try check(record.violations.isEmpty, "order of calls: \(record.violations)")
            return record
        }

        package func expectSuccess(
            _ record: RecordingHandler.Record, body: [UInt8]? = nil, status: Int = 200, verified: Bool = true
        ) throws {
            guard let summary = record.summary else {
                throw Failure(description: "failed with \(record.error.map { "\($0.code) \($0)" } ?? "nothing")")
            }
            try equal(record.head?.status, status, "status")
            try equal(summary.lengthVerified, verified, "lengthVerified")
            try equal(summary.bodyBytes, record.bodyBytes, "bodyBytes of the summary")
            if let body { try check(record.body == body, "body differs: \(record.body.count) of \(body.count) bytes") }
        }

        package func expectFailure(
            _ record: RecordingHandler.Record, _ codes: DownloadError.Code..., retryable: Bool? = nil
        ) throws {
            guard let error = record.error else { throw Failure(description: "succeeded, but must fail with \(codes)") }
            try check(codes.contains(error.code), "failed with \(error.code), not \(codes): \(error)")
            if let retryable { try equal(error.isRetryable, retryable, "isRetryable of \(error.code) (\(error))") }
            try check(!"\(error)".contains("secret"), "the error shows a secret: \(error)")
        }

        package func check(_ condition: Bool, _ message: @autoclosure () -> String) throws {
            if !condition { throw Failure(description: message()) }
        }

        package func equal<Value: Equatable>(_ value: Value, _ expected: Value, _ what: @autoclosure () -> String)
            throws
        {
            try check(value == expected, "\(what()) is \(value), not \(expected)")
        }
    }
}
