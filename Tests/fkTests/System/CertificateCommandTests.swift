import TestSupport
import Testing

@testable import fk

@Suite("Certificates, end to end")
struct CertificateCommandTests {
    @Test(
        "the reason for refusing a certificate is shown; --insecure is the task's own and shown in fk info",
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
        try await sandbox.done("get", other, "--insecure")
        #expect(try sandbox.bytes("b") == [1, 2, 3])
        #expect(try await sandbox.json("info", other)["insecure"] as? Bool == true)
        #expect(try await sandbox.fk("info", other).output.contains("certificate is not checked"))
        try await sandbox.done(["retry", url])
        #expect(try await sandbox.fk(["get", url] + trust).status == 1, "the other task's leave is not this one's")
    }

    @Test("--pinnedpubkey refuses another key with the option's name, and stays with the task for `fk run`")
    func pinned() async throws {
        let nginx = try NginxServer()
        try nginx.write([1, 2, 3], to: "a")
        let sandbox = try Sandbox()
        let words = [
            "\(nginx.tlsBase)/a", "--cacert", nginx.certificates.caFile, "--pinnedpubkey",
            "sha256//\(Data(count: 32).base64EncodedString())",
        ]
        #expect(try await sandbox.fk(["barrel", "create", "later"] + words + ["-o", "b"]).status == 0)
        for line in [["get"] + words, ["run"]] {
            let result = try await sandbox.fk(line)
            #expect(result.status == 1 && result.errors.contains("(--pinnedpubkey)"), "\(result.errors)")
        }
        #expect(try sandbox.names() == [])
    }
}
