import TestSupport
import Testing

/// Nobody is believed to be the server who cannot prove it.
@Suite("Certificates")
struct CertificateTests {
    private static let content = Bytes.pattern(count: 1_000)

    private func fetch(
        _ nginx: NginxServer, trust: Bool = true, _ settings: (inout TransportOptions) -> Void = { _ in }
    ) async throws -> (DownloadInfo, LiveBench) {
        try nginx.write(Self.content, to: "a")
        let live = try LiveBench {
            if trust { $0.transport.caPath = nginx.certificates.caFile }
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

    @Test("a pinned public key: the right one of several passes, another one is refused, also with `insecure`")
    func pinned() async throws {
        let nginx = try NginxServer()
        let certificate = nginx.certificates.certificate(.good)
        let key = try Program.run("openssl", ["x509", "-in", certificate, "-pubkey", "-noout"])
        let pem = key.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
        let der = [UInt8](try #require(Data(base64Encoded: pem)))
        func pin(_ digest: [UInt8]) -> String { "sha256//\(Data(digest).base64EncodedString())" }
        let right = pin(Self.bytes(hex: Bytes.sha256(der)))
        let wrong = pin([UInt8](repeating: 7, count: 32))
        for keys in [right, "\(wrong);\(right)"] {
            let (info, live) = try await fetch(nginx) { $0.pinnedPublicKey = keys }
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try live.out("a") == Self.content)
        }
        for insecure in [false, true] {
            let (info, live) = try await fetch(nginx) {
                $0.pinnedPublicKey = wrong
                $0.insecure = insecure
            }
            expectRefused(info, live, "does not match pinned public key")
            #expect(info.error?.remedy == .checkPinnedKey)
        }
        let live = try LiveBench { $0.transport.caPath = nginx.certificates.caFile }
        #expect(try await live.fetch("\(nginx.tlsBase)/a") { $0.pinnedPublicKey = wrong }.error?.code == .tls)
    }

    private static func bytes(hex: String) -> [UInt8] {
        let digits = Array(hex)
        return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }

    @Test(
        "hashes that libcurl would ignore, and paths, are refused",
        arguments: ["", "sha256//", "key.pem", "sha256//AA==", "md5//x"])
    func badPin(_ keys: String) throws {
        var configure = Configure()
        configure.transport.pinnedPublicKey = keys
        #expect(throws: DownloadError.self) { try configure.validate() }
        var options = TaskOptions()
        options.pinnedPublicKey = keys
        #expect(throws: DownloadError.self) { try options.validate() }
    }

    @Test(
        "a client's certificate is shown to the server that was asked for, and not behind a redirect to another origin")
    func clientCertificate() async throws {
        let own = try TestCertificates(kinds: [.good])
        let nginx = try NginxServer(
            extra: """
                ssl_verify_client optional_no_ca;
                location = /me { return 200 "$ssl_client_s_dn."; }
                location = /away { return 302 https://localhost:$server_port/me; }
                """)
        let pair = ClientCertificate(
            file: URL(fileURLWithPath: own.certificate(.good)), keyFile: URL(fileURLWithPath: own.key(.good)))
        let live = try LiveBench { $0.transport.caPath = nginx.certificates.caFile }
        for (path, certificate, name) in [
            ("/me", pair, "CN=good."), ("/me", nil, "."), ("/away", pair, "."),
        ] as [(String, ClientCertificate?, String)] {
            let file = "\(path.dropFirst())-\(certificate != nil)"
            let info = try await live.fetch("\(nginx.tlsBase)\(path)") {
                $0.clientCertificate = certificate
            }
            let path = try #require(info.path, "\(String(describing: info.error))")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == name, "\(file)")
            try await live.downloader.control.trash(.all)
        }
        await live.downloader.close()
    }

    @Test("a certificate that the given list revokes is refused with the reason", arguments: [true, false])
    func revoked(_ isRevoked: Bool) async throws {
        let nginx = try NginxServer()
        let list = try nginx.certificates.revocations(isRevoked ? .good : nil)
        let (info, live) = try await fetch(nginx) { $0.crlPath = list }
        if isRevoked {
            expectRefused(info, live, "certificate revoked")
        } else {
            #expect(info.state == .complete, "\(String(describing: info.error))")
        }
    }

    @Test("a list of revocations that cannot be read is an error, not a permission")
    func unreadableList() async throws {
        let (info, live) = try await fetch(try NginxServer()) { $0.crlPath = "/does/not/exist.pem" }
        #expect(info.state == .error && info.error?.code == .tls && live.names == [])
    }

    @Test("insecure holds for the task that asked for it, and for no other on the same host")
    func insecure() async throws {
        let nginx = try NginxServer(certificate: .wrongHost)
        for name in ["a", "b"] { try nginx.write(Self.content, to: name) }
        let live = try LiveBench { $0.transport.caPath = nginx.certificates.caFile }
        let careless = try await live.fetch("\(nginx.tlsBase)/a") { $0.insecure = true }
        let careful = try await live.fetch("\(nginx.tlsBase)/b")
        #expect(careless.state == .complete && careful.error?.code == .tls)
        #expect(live.names == ["a"])
    }
}
