import FKCore
import FKMiddleware

/// The file of `--cacert`. It is checked when the command line is parsed, because an error during the transfer looks
/// like the server's fault, after all attempts.
enum CertificateFile {
    /// Checks the file.
    ///
    /// - Returns: the absolute path.
    /// - Throws: `UsageError` for a file that cannot be read or contains no certificate in PEM form.
    static func check(_ path: String, _ arguments: ParsedArguments, _ context: CommandContext) throws -> String {
        guard !path.isEmpty else { throw arguments.error("--cacert: the file's name is empty.") }
        let path = try Paths.absolute(path, from: context.workingDirectory)
        let bytes: [UInt8]
        do throws(DownloadError) {
            bytes = try SmallFile.read(path, limit: 64 << 20, named: "certificate file")
        } catch {
            throw arguments.error("--cacert: \(error.message)")
        }
        let text = String(decoding: bytes, as: Unicode.ASCII.self)
        guard ["", "TRUSTED ", "X509 "].contains(where: { text.contains("-----BEGIN \($0)CERTIFICATE-----") }) else {
            throw arguments.error(
                "--cacert: \(Escaping.visible(path)) holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).")
        }
        return path
    }
}
