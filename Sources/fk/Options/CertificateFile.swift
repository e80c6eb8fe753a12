import FKCore
import FKMiddleware
import Foundation

/// The file of `--cacert`. It is checked when the command line is parsed, because an error during the transfer looks
/// like the server's fault, after all attempts.
enum CertificateFile {
    /// Larger files are not lists of authorities.
    private static let maxBytes: off_t = 64 << 20

    /// Checks the file.
    ///
    /// - Returns: the absolute path.
    /// - Throws: `UsageError` for a file that cannot be read or contains no certificate in PEM form.
    static func check(_ path: String, _ arguments: ParsedArguments, _ context: CommandContext) throws -> String {
        guard !path.isEmpty else { throw arguments.error("--cacert: the file's name is empty.") }
        let path = try Paths.absolute(path, from: context.workingDirectory)
        if let fault = fault(of: path) { throw arguments.error("--cacert: \(Escaping.visible(path)) \(fault).") }
        return path
    }

    private static func fault(of path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return "cannot be read: \(String(cString: strerror(errno)))" }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return "is not a file" }
        if status.st_size == 0 { return "is empty" }
        if status.st_size > maxBytes { return "is too large for a list of authorities" }
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(status.st_size), alignment: 16)
        defer { bytes.deallocate() }
        let count = Glue.read(descriptor, bytes)
        guard count >= 0 else { return "cannot be read: \(String(cString: strerror(errno)))" }
        let text = String(decoding: bytes[..<count], as: Unicode.ASCII.self)
        let isPEM = ["", "TRUSTED ", "X509 "].contains { text.contains("-----BEGIN \($0)CERTIFICATE-----") }
        return isPEM ? nil : "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
    }
}
