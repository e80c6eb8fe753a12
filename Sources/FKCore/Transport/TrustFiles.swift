import FKMiddleware
import Foundation

extension TransportOptions {
    /// The maximum length of a file with certificates.
    package static let trustFileLimit = 64 << 20

    /// Reads a file with certificate authorities.
    ///
    /// - Throws: `.invalidArgument` for a file that cannot be read, is not a regular file, is longer than `trustFileLimit`, or contains no
    ///   certificate in PEM form.
    package static func checkAuthorities(_ path: String) throws(DownloadError) {
        let bytes = try [UInt8](ofFile: path, limit: trustFileLimit, named: "certificate file")
        let text = String(decoding: bytes, as: Unicode.ASCII.self)
        guard ["", "TRUSTED ", "X509 "].contains(where: { text.contains("-----BEGIN \($0)CERTIFICATE-----") }) else {
            throw DownloadError(
                .invalidArgument, "\(path.visible) holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).")
        }
    }

    /// Reads a file with the private key of a client's certificate.
    ///
    /// - Throws: `.invalidArgument` as `checkAuthorities`, for a file without a key, and for an encrypted one, which libcurl would ask a
    ///   password for.
    package static func checkKey(_ path: String) throws(DownloadError) {
        let bytes = try [UInt8](ofFile: path, limit: trustFileLimit, named: "key file")
        let text = String(decoding: bytes, as: Unicode.ASCII.self)
        let name = path.visible
        guard !text.contains("BEGIN ENCRYPTED PRIVATE KEY"), !text.contains("Proc-Type: 4,ENCRYPTED") else {
            throw DownloadError(
                .invalidArgument,
                "The key in \(name) is encrypted. Write it without a password: openssl pkey -in \(name) -out FILE.")
        }
        guard text.contains("PRIVATE KEY-----") else {
            throw DownloadError(
                .invalidArgument, "\(name) holds no private key in PEM form (-----BEGIN PRIVATE KEY-----).")
        }
    }

    /// Why a transfer with these options cannot start: a file that libcurl reads itself, and that is there and not a regular one, or that
    /// is too long. nil if it can; a missing file is left to the library. The file is not opened, because opening a device may wait.
    var trustFileFault: String? {
        let readsNetrc = netrc || loginHost != nil
        let logins = readsNetrc ? (getenv("HOME").map { String(cString: $0) } ?? NSHomeDirectory()) + "/.netrc" : nil
        let files: [(name: String, path: String?)] = [
            ("certificate file", caPath), ("revocation list", crlPath), ("file of logins", logins),
            ("client's certificate", clientCertificate?.path),
            ("client's key", clientCertificate?.keyPath),
        ]
        for case (let name, let path?) in files {
            var status = stat()
            guard stat(path, &status) == 0 else { continue }
            if status.st_mode & S_IFMT != S_IFREG { return "the \(name) \(path.visible) is not a file" }
            if status.st_size > off_t(Self.trustFileLimit) {
                return "the \(name) \(path.visible) is longer than \(Self.trustFileLimit >> 20) MiB"
            }
        }
        return nil
    }
}
