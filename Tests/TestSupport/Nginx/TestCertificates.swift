import Foundation

/// A certificate authority made for one test and certificates signed by it.
package struct TestCertificates: Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        /// For localhost and 127.0.0.1.
        case good
        /// For other.example.
        case wrongHost
        /// For localhost and 127.0.0.1, its time over since 2020.
        case expired
        /// For localhost and 127.0.0.1, signed by nobody but itself.
        case selfSigned
    }

    private let folder: TemporaryFolder

    /// The PEM file to trust.
    package var caFile: String { folder.file("ca.pem").path }
    package func certificate(_ kind: Kind) -> String { folder.file("\(kind.rawValue).pem").path }
    package func key(_ kind: Kind) -> String { folder.file("\(kind.rawValue).key").path }

    /// Takes some 50 ms.
    package init(kinds: [Kind] = [.good]) throws {
        folder = try TemporaryFolder()
        try Program.run(
            "openssl", Self.newKey("ca.key") + ["-x509", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Test CA"],
            in: folder.url)
        for kind in kinds { try make(kind) }
    }

    private static func newKey(_ file: String) -> [String] {
        ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file]
    }

    private func make(_ kind: Kind) throws {
        let name = kind.rawValue
        let names = kind == .wrongHost ? "DNS:other.example" : "DNS:localhost,IP:127.0.0.1"
        guard kind != .selfSigned else {
            try Program.run(
                "openssl",
                Self.newKey("\(name).key") + [
                    "-x509", "-out", "\(name).pem", "-days", "2", "-subj", "/CN=\(name)", "-addext",
                    "subjectAltName=\(names)",
                ], in: folder.url)
            return
        }
        try Program.run(
            "openssl", Self.newKey("\(name).key") + ["-out", "\(name).csr", "-subj", "/CN=\(name)"], in: folder.url)
        try folder.write(Array("subjectAltName=\(names)\n".utf8), to: "\(name).ext")
        guard kind == .expired else {
            let arguments = [
                "x509", "-req", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            ]
            try Program.run(
                "openssl", arguments + ["-out", "\(name).pem", "-days", "2", "-extfile", "\(name).ext"], in: folder.url)
            return
        }
        try prepareAuthority()
        let arguments = [
            "ca", "-batch", "-config", "ca.cnf", "-in", "\(name).csr", "-out", "\(name).pem", "-extfile", "\(name).ext",
        ]
        try Program.run(
            "openssl", arguments + ["-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-notext"],
            in: folder.url)
    }

    /// Makes the authority's list of revoked certificates.
    ///
    /// - Parameter kind: what is on it; nil for an empty list.
    /// - Returns: the PEM file.
    package func revocations(_ kind: Kind?) throws -> String {
        try prepareAuthority()
        if let kind {
            try Program.run("openssl", ["ca", "-config", "ca.cnf", "-revoke", "\(kind.rawValue).pem"], in: folder.url)
        }
        try Program.run("openssl", ["ca", "-config", "ca.cnf", "-gencrl", "-out", "crl.pem"], in: folder.url)
        return folder.file("crl.pem").path
    }

    private func prepareAuthority() throws {
        try folder.write(Array(Self.authorityConfiguration.utf8), to: "ca.cnf")
        try folder.write([], to: "index.txt")
    }

    /// Only `openssl ca` can date a certificate back.
    private static let authorityConfiguration = """
        [ca]
        default_ca = test
        [test]
        certificate = ca.pem
        private_key = ca.key
        database = index.txt
        new_certs_dir = .
        rand_serial = yes
        default_crl_days = 2
        default_md = sha256
        policy = any
        [any]
        commonName = supplied
        """
}
