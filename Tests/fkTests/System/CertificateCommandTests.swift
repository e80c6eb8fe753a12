import FKCore
import Foundation
import TestSupport
import Testing

@testable import fk

/// Row 77 as a person sees it.
@Suite("Faults: certificates, end to end", .timeLimit(.minutes(10)))
struct FaultCertificateTests {
    @Test(
        "fault 77: the reason for refusing a certificate is shown; --insecure is the task's own and shown in fk info",
        arguments: [
            (TestCertificates.Kind.expired, "expired"), (.selfSigned, "self"), (.wrongHost, "subject name"),
        ])
    func refused(_ kind: TestCertificates.Kind, _ reason: String) async throws {
        let nginx = try NginxServer(certificate: kind)
        for name in ["a", "b"] { try nginx.write([1, 2, 3], to: name) }
        let sandbox = try Sandbox()
        let url = "\(nginx.tlsBase)/a"
        let trust = ["--cacert", nginx.certificates.caFile]
        let result = try await sandbox.fk(["get", url] + trust)
        #expect(result.status == 1 && result.errors.contains(reason), "\(result.errors)")
        #expect(try sandbox.names() == [])
        let info = try await sandbox.json("info", url)
        #expect(info["error", "code"] as? String == "tls" && info["insecure"] as? Bool == false)

        let other = "\(nginx.tlsBase)/b"
        #expect(try await sandbox.fk("get", other, "--insecure").status == 0)
        #expect(try sandbox.bytes("b") == [1, 2, 3])
        #expect(try await sandbox.json("info", other)["insecure"] as? Bool == true)
        #expect(try await sandbox.fk("info", other).output.contains("certificate is not checked"))
        #expect(try await sandbox.fk(["retry", url]).status == 0)
        #expect(try await sandbox.fk(["get", url] + trust).status == 1, "the other task's leave is not this one's")
    }
}
