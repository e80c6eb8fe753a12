#if canImport(CLibcurl)
    import FKCore
    import TestSupport
    import Testing

    @Suite("The transport over libcurl")
    struct TransportConformanceTests {
        @Test(
            "keeps the transports' contract",
            arguments: TransportConformance.cases(for: Set(TransportConformance.Feature.allCases)))
        func conformance(_ test: TransportConformance) async throws {
            try await test.run { CurlTransport() }
        }
    }
#endif
