import FKCore
import TestSupport
import Testing

@Suite("The transport over URLSession", .timeLimit(.minutes(2)))
struct TransportURLSessionTests {
    /// A case that FoundationNetworking's own faults make impossible. Docs/Transports.md has the same list.
    struct Impossible: Sendable, CustomTestStringConvertible {
        let name: String
        let reason: String
        /// False where trying it would hang or flood every other transfer of the process.
        var canBeTried = true

        var testDescription: String { "\(name): \(reason)" }
    }

    static let impossible: [Impossible] = [
        .init(name: "content coding is left as it is", reason: "a coded body is decoded, and refused here"),
        .init(name: "a redirect whose body stalls is followed", reason: "a redirect is told of behind its body"),
        .init(
            name: "the body of an error or a redirect that drips in is cut after one allowed silence",
            reason: "a redirect is told of behind its body"),
        .init(
            name: "chunked, with extensions and trailer fields",
            reason: "a trailer field ends the process (swift-corelibs-foundation #5285)", canBeTried: false),
        .init(
            name: "an endless body of a redirect is not read", reason: "a redirect's body is kept in memory",
            canBeTried: false),
    ]

    static let cases = TransportConformance.cases(for: [])
    static let possible = cases.filter { test in !impossible.contains { $0.name == test.name } }

    @Test("keeps the transports' contract", arguments: possible)
    func conformance(_ test: TransportConformance) async throws {
        try await test.run { URLSessionTransport() }
    }
}
