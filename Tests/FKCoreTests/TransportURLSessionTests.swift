import FKCore
import TestSupport
import Testing

@Suite("The transport over URLSession", .timeLimit(.minutes(2)))
struct TransportURLSessionTests {
    @Test("keeps the transports' contract", arguments: TransportConformance.cases(for: []))
    func conformance(_ test: TransportConformance) async throws {
        try await test.run { URLSessionTransport() }
    }
}
