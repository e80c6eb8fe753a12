import TestSupport
import Testing

@testable import FKCore
@testable import FKModel

/// Nobody is believed to be the server who cannot prove it.
@Suite("Certificates", .timeLimit(.minutes(10)))
struct CertificateTests {
    private static let content = Bytes.pattern(count: 1_000)

    private func fetch(
        _ nginx: NginxServer, trust: Bool = true, _ settings: (inout TransportOptions) -> Void = { _ in }
    ) async throws -> (DownloadInfo, LiveBench) {
        try nginx.write(Self.content, to: "a")
        let live = try LiveBench {
            if trust { $0.transport.caFile = nginx.certificates.caFile }
            settings(&$0.transport)
        }
        let info = try await live.fetch("\(nginx.tlsBase)/a?key=canary")
        await live.downloader.close()
        return (info, live)
    }

    private func expectRefused(_ info: DownloadInfo, _ live: LiveBench, _ reason: String) {
        #expect(info.state == .error && info.error?.code == .tls && info.attempts == 1)
        let cause = info.error?.underlying?.lowercased().replacing("-", with: " ") ?? ""
        #expect(cause.contains(reason), "\(cause)")
        #expect(info.error.map { "\($0)".contains("canary") } == false)
        #expect(live.names == [])
    }

    @Test("a certificate that the given list revokes is refused with the reason", arguments: [true, false])
    func revoked(_ isRevoked: Bool) async throws {
        let nginx = try NginxServer()
        let list = try nginx.certificates.revocations(isRevoked ? .good : nil)
        let (info, live) = try await fetch(nginx) { $0.crlFile = list }
        if isRevoked {
            expectRefused(info, live, "certificate revoked")
        } else {
            #expect(info.state == .complete, "\(String(describing: info.error))")
        }
    }

    @Test("a list of revocations that cannot be read is an error, not a permission")
    func unreadableList() async throws {
        let (info, live) = try await fetch(try NginxServer()) { $0.crlFile = "/does/not/exist.pem" }
        #expect(info.state == .error && info.error?.code == .tls && live.names == [])
    }

    @Test("insecure holds for the task that asked for it, and for no other on the same host")
    func insecure() async throws {
        let nginx = try NginxServer(certificate: .wrongHost)
        for name in ["a", "b"] { try nginx.write(Self.content, to: name) }
        let live = try LiveBench { $0.transport.caFile = nginx.certificates.caFile }
        let careless = try await live.fetch("\(nginx.tlsBase)/a") { $0.insecure = true }
        let careful = try await live.fetch("\(nginx.tlsBase)/b")
        #expect(careless.state == .complete && careful.error?.code == .tls)
        #expect(live.names == ["a"])
        await live.downloader.close()
    }
}
