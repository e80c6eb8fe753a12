import CSystem
import Foundation

/// The program that verifies a signature. Key, signature and output are in a private folder for the time of its run.
struct SignatureProgram {
    private let name: String
    /// Debian's name of the package.
    private let package: String

    init(_ scheme: SignatureKey.Scheme) {
        (name, package) =
            switch scheme {
            case .ssh: ("ssh-keygen", "openssh-client")
            case .openPGP: ("gpgv", "gpgv")
            case .minisign, .sigstore: ("cosign", "cosign")
            }
    }

    /// The program's path.
    ///
    /// - Throws: a fault that names the package if it is not installed.
    func path() throws(SignatureKey.Fault) -> String {
        if let fault = OtherPrograms.fault { throw SignatureKey.Fault("\(name) cannot run: \(fault)", isUnknown: true) }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(
            separator: ":")
        for folder in folders where folder.hasPrefix("/") && access("\(folder)/\(name)", X_OK) == 0 {
            return "\(folder)/\(name)"
        }
        throw SignatureKey.Fault("\(name) is not installed: install the package \(package)", isUnknown: true)
    }

    /// - Returns: the signer.
    func prove(
        _ signature: [UInt8], _ content: SignedContent, by key: SignatureKey
    ) throws(SignatureKey.Fault) -> String {
        let program = try path()
        let folder = try Self.privateFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Self.write(signature, "\(folder)/signature")
        let data: String
        switch content {
        case .bytes(let bytes):
            data = "\(folder)/data"
            try Self.write(bytes, data)
        case .file(let path): data = path
        }
        switch key.scheme {
        case .ssh:
            try Self.write(Array("fk namespaces=\"file\" ".utf8) + key.bytes + [0x0a], "\(folder)/key")
            try run(
                program, ["-Y", "verify", "-f", "key", "-I", "fk", "-n", "file", "-s", "signature"], folder, data)
            return key.description
        case .openPGP:
            try Self.write(key.bytes, "\(folder)/key")
            let output = try run(
                program,
                ["--homedir", folder, "--status-fd", "1", "--keyring", "\(folder)/key", "signature", "-"], folder, data)
            return "openpgp:\(try Self.fingerprint(output))"
        case .sigstore, .minisign:
            try Self.write(key.bytes, "\(folder)/key")
            let proof = try Self.proof(signature)
            try Self.write(proof.bytes, "\(folder)/proof")
            // The key alone proves. The log's entry would need the keys of the log, from the network.
            try run(
                program, ["verify-blob", "--key", "key", proof.option, "proof", "--insecure-ignore-tlog=true", "-"],
                folder,
                data)
            let digest = Digester(.sha256)
            key.bytes.withUnsafeBytes { digest.update($0) }
            return "sigstore:\(digest.hex())"
        }
    }

    /// What cosign gets: a bundle with the members of Sigstore's format alone, or the signature of a bundle of cosign 1 and 2. In
    /// such a bundle, cosign prefers the key that is in it to the given one.
    private static func proof(_ signature: [UInt8]) throws(SignatureKey.Fault) -> (option: String, bytes: [UInt8]) {
        guard signature.first(where: { ![0x20, 0x0a, 0x0d, 0x09].contains($0) }) == UInt8(ascii: "{") else {
            return ("--signature", signature)
        }
        let bundle = try? JSONSerialization.jsonObject(with: Data(signature)) as? [String: Any]
        if let text = bundle?["base64Signature"] as? String { return ("--signature", Array(text.utf8)) }
        let members = ["mediaType", "verificationMaterial", "messageSignature"]
        guard let bundle, bundle["messageSignature"] != nil,
            let data = try? JSONSerialization.data(withJSONObject: bundle.filter { members.contains($0.key) })
        else { throw SignatureKey.Fault("its signature is no bundle of Sigstore for a file") }
        return ("--bundle", [UInt8](data))
    }

    /// Same as `SignatureKey.sshSignature`.
    static func sign(_ file: String, with key: String) throws(SignatureKey.Fault) -> [UInt8] {
        let program = Self(.ssh)
        let path = try program.path()
        let folder = try privateFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        guard symlink(file, "\(folder)/data") == 0 else { throw failed("make a link", errno) }
        let agent = ProcessInfo.processInfo.environment["SSH_AUTH_SOCK"].map { ["SSH_AUTH_SOCK=\($0)"] } ?? []
        try program.run(
            path, ["-Y", "sign", "-f", key, "-n", "file", "data"], folder, "/dev/null",
            environment: ["SSH_ASKPASS=/bin/false", "SSH_ASKPASS_REQUIRE=force"] + agent, failure: "cannot sign")
        guard let signature = try? [UInt8](ofFile: "\(folder)/data.sig", limit: 1 << 20, named: "signature") else {
            throw SignatureKey.Fault("ssh-keygen has made no signature", isUnknown: true)
        }
        return signature
    }

    /// The fingerprint of the primary key of the only signature. gpgv also ends with 0 for a key that has expired.
    private static func fingerprint(_ output: String) throws(SignatureKey.Fault) -> String {
        let status = output.split(separator: "\n").compactMap { line -> [Substring]? in
            line.hasPrefix("[GNUPG:] ") ? line.dropFirst(9).split(separator: " ") : nil
        }
        let verdicts = status.filter { $0.first?.hasSuffix("SIG") == true && $0.first != "NEWSIG" }.map { $0[0] }
        guard verdicts.filter({ $0 != "VALIDSIG" }) == ["GOODSIG"],
            let valid = status.filter({ $0.first == "VALIDSIG" }).first, let primary = valid.last, primary.count >= 40
        else {
            throw SignatureKey.Fault(
                verdicts.count > 2
                    ? "it has more than one signature" : "the key of its signature has expired or was revoked")
        }
        if let fault = Self.fault(inValid: valid) { throw SignatureKey.Fault(fault) }
        return String(primary)
    }

    /// Why a signature that gpgv calls valid is refused; nil if it is not.
    ///
    /// - Parameter fields: `VALIDSIG`, fingerprint, date, time, expiry, version, reserved, key's algorithm, digest's algorithm,
    ///   class, and the fingerprint of the primary key.
    static func fault(inValid fields: [Substring]) -> String? {
        guard fields.count >= 11 else { return "gpgv does not say how its signature was made" }
        // A text-mode signature has other bytes with the same text: other line ends, and blanks before them.
        guard fields[9] == "00" else { return "its signature is one of a text, and not of the file's bytes" }
        // RFC 9580 section 9.5: SHA-2 and SHA-3.
        guard ["8", "9", "10", "11", "12", "14"].contains(fields[8]) else {
            let names = ["1": "MD5", "2": "SHA-1", "3": "RIPEMD-160"]
            return "its signature uses \(names[String(fields[8])] ?? "an unknown digest"), which can be forged"
        }
        return nil
    }

    /// Runs the program over the data.
    ///
    /// - Returns: its output.
    /// - Throws: a fault with its last line unless it ends with 0.
    @discardableResult private func run(
        _ program: String, _ arguments: [String], _ folder: String, _ data: String, environment: [String] = [],
        failure: String = "does not accept its signature"
    ) throws(SignatureKey.Fault) -> String {
        let input = try SignedContent.open(data)
        defer { close(input) }
        let output = open("\(folder)/output", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw Self.failed("write", errno) }
        defer { close(output) }
        // `fk_spawn` takes descriptors above 2.
        let high = [input, output, output].map { fcntl($0, F_DUPFD_CLOEXEC, 3) }
        defer { for descriptor in high where descriptor >= 0 { close(descriptor) } }
        var pid: pid_t = 0
        let environment =
            environment + ["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "HOME=\(folder)", "TMPDIR=\(folder)"]
        let code = CStrings.with([name] + arguments) { arguments in
            CStrings.with(environment) { fk_spawn(&pid, program, arguments, $0, folder, high) }
        }
        guard code == 0 else { throw Self.failed("start \(name)", code) }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            guard errno == EINTR else { throw Self.failed("wait for \(name)", errno) }
        }
        let text = String(
            decoding: (try? [UInt8](ofFile: "\(folder)/output", limit: 1 << 20, named: "output")) ?? [], as: UTF8.self)
        guard status == 0 else {
            let lines = text.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("[GNUPG:]") }
            var reason = String(lines.last ?? "no reason given").prefix(200)
            // The sentence around it has a full stop of its own.
            if reason.last == "." { reason.removeLast() }
            throw SignatureKey.Fault("\(name) \(failure): \(String(reason).visible)")
        }
        return text
    }

    private static func failed(_ what: String, _ code: Int32) -> SignatureKey.Fault {
        SignatureKey.Fault(
            "the signature cannot be examined: \(what): \(String(cString: strerror(code)))", isUnknown: true)
    }

    private static func privateFolder() throws(SignatureKey.Fault) -> String {
        var template = Array(
            (NSTemporaryDirectory() as NSString).appendingPathComponent("fk-signature-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw failed("make a folder", errno) }
        return template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    private static func write(_ bytes: [UInt8], _ path: String) throws(SignatureKey.Fault) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failed("write", errno) }
        defer { close(descriptor) }
        var position = 0
        while position < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress! + position, $0.count - position)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failed("write", errno) }
            position += count
        }
    }
}

extension SignatureKey {
    /// Signs a file with OpenSSH, as `ssh-keygen -Y sign -n file` does. Nobody is asked for a passphrase: the agent has the key of one.
    ///
    /// - Parameters:
    ///   - file: its absolute path.
    ///   - key: the absolute path of a private key, or of the public key of one that the agent has.
    /// - Throws: `.invalidArgument` with the program's reason, or with the name of the package if it is not installed.
    package static func sshSignature(of file: String, with key: String) throws(DownloadError) -> [UInt8] {
        do throws(SignatureKey.Fault) { return try SignatureProgram.sign(file, with: key) } catch {
            throw DownloadError(.invalidArgument, "\(error.reason).")
        }
    }

    /// What is missing to verify signatures by this key; nil if nothing is.
    package var programFault: String? {
        if scheme == .minisign { return nil }
        do throws(SignatureKey.Fault) {
            _ = try SignatureProgram(scheme).path()
            return nil
        } catch { return error.reason }
    }
}
