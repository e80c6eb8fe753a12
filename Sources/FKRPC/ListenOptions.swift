/// Where the server listens and how clients prove themselves, as the command line says it.
package struct ListenOptions: Sendable, Hashable {
    /// The default of `--listen`.
    package static let standard = "127.0.0.1:6800"

    /// The origins that pages of any site can have.
    private static let open: Set<String> = ["*", "null"]

    /// The address, without brackets.
    package var address: String
    /// The port; 0 lets the system choose.
    package var port: Int
    package var hasNoSecret: Bool
    /// The file with the secret; nil for the one in the work path.
    package var secretFile: String?
    /// Origins of other sites that may call.
    package var origins: [String]
    /// PEM files with the certificate and its key; nil without TLS.
    package var certificate: String?
    package var key: String?

    /// Why the options are refused, with what is missing.
    package struct Fault: Error, Hashable {
        /// A sentence for people.
        package var message: String
        package init(message: String) { self.message = message }
    }

    /// - Parameters:
    ///   - listen: `address:port`, `[address]:port` or a port.
    ///   - isPlain: true allows other addresses than those of this machine without TLS.
    /// - Throws: `Fault`.
    package init(
        listen: String = standard, secretFile: String? = nil, hasNoSecret: Bool = false, origins: [String] = [],
        certificate: String? = nil, key: String? = nil, isPlain: Bool = false
    ) throws(Fault) {
        if let port = AccessRules.port(listen[...]) {
            (address, self.port) = ("127.0.0.1", port)
        } else {
            guard let (name, port) = AccessRules.split(listen.lowercased()), let port else {
                throw Fault(message: "--listen: give an address and a port, such as \(Self.standard) or [::1]:6800.")
            }
            guard name == "localhost" || AccessRules.isAddress(name) else {
                throw Fault(message: "--listen: give the address as a number, such as 0.0.0.0, or localhost.")
            }
            (address, self.port) = (name == "localhost" ? "127.0.0.1" : name, port)
        }
        self.hasNoSecret = hasNoSecret
        self.secretFile = secretFile
        self.origins = origins
        self.certificate = certificate
        self.key = key
        if hasNoSecret, secretFile != nil {
            throw Fault(message: "--secret-file and --no-secret exclude each other.")
        }
        if hasNoSecret, let open = origins.first(where: { Self.open.contains(AccessRules.trimmed($0.lowercased())) }) {
            throw Fault(
                message:
                    "--allow-origin \(AccessRules.shown(open)) with --no-secret lets every page of the Internet in: leave out "
                    + "--no-secret, or name the page's own origin, such as https://ariang.example.")
        }
        if certificate == nil, key != nil { throw Fault(message: "--key needs --cert FILE, the certificate.") }
        if certificate != nil, key == nil { throw Fault(message: "--cert needs --key FILE, the certificate's key.") }
        if certificate != nil, isPlain { throw Fault(message: "--plain and --cert exclude each other.") }
        guard !isLoopback else { return }
        if hasNoSecret {
            throw Fault(
                message:
                    "--listen \(listen) can be reached from other machines and needs a secret: leave out --no-secret.")
        }
        if certificate == nil, !isPlain {
            throw Fault(
                message:
                    "--listen \(listen) can be reached from other machines and needs TLS: give --cert FILE and --key "
                    + "FILE, or --plain if a proxy or a tunnel encrypts.")
        }
    }

    /// True if only this machine reaches the address.
    package var isLoopback: Bool { address == "::1" || address.hasPrefix("127.") }

    /// The address of the page with this port.
    package func url(port: Int) -> String {
        let host = address.contains(":") ? "[\(address)]" : address
        return "\(certificate == nil ? "http" : "https")://\(host):\(port)/"
    }
}
