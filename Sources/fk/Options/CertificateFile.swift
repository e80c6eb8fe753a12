import FKCore
import FKMiddleware
import Foundation

/// The file of `--cacert`. It is checked when the command line is parsed, because an error during the transfer looks
/// like the server's fault, after all attempts.
enum CertificateFile {
    /// - Returns: the absolute path.
    /// - Throws: `UsageError` for a file that cannot be read or contains no certificate in PEM form; `CommandFailure` for a saved one.
    static func check(_ path: String, _ arguments: ParsedArguments, _ context: CommandContext) throws -> String {
        guard !path.isEmpty else { throw arguments.error("--cacert: the file's name is empty.") }
        let path = try Paths.absolute(path, from: context.workingDirectory)
        do throws(DownloadError) { try TransportOptions.checkAuthorities(path) } catch {
            if arguments.has("cacert"), !arguments.isGiven("cacert") {
                let workPath = WorkPath(context.global.workPath).ofShards.root
                throw Settings.fault("cacert: \(error.message)", workPath: workPath)
            }
            throw arguments.error("--cacert: \(error.message)")
        }
        return path
    }

    /// The client's certificate of `--cert` and `--key`; nil without them. The files are read again for each connection.
    ///
    /// - Throws: `UsageError` for a file that cannot be read or has no certificate or no key in PEM form.
    static func client(_ arguments: ParsedArguments, _ context: CommandContext) throws -> ClientCertificate? {
        guard let given = arguments["cert"] else {
            if arguments.has("key") { throw arguments.error("--key: give the certificate with --cert FILE.") }
            return nil
        }
        let path = try Paths.absolute(given, from: context.workingDirectory)
        // curl's CERT:PASSWORD. The password is not repeated.
        if access(path, F_OK) != 0, let colon = given.lastIndex(of: ":"), access(String(given[..<colon]), F_OK) == 0 {
            throw arguments.error(
                "--cert: give the file alone, without a password: fk reads keys that are not encrypted, from --cert or --key FILE."
            )
        }
        let keyPath = try arguments["key"].map { try Paths.absolute($0, from: context.workingDirectory) }
        for (option, path, isChecked) in [
            ("--cert", path, TransportOptions.checkAuthorities), ("--key", keyPath ?? path, TransportOptions.checkKey),
        ] {
            do throws(DownloadError) { try isChecked(path) } catch {
                throw arguments.error("\(option): \(error.message)")
            }
        }
        var certificate = ClientCertificate(file: URL(fileURLWithPath: path))
        certificate.path = path
        certificate.keyPath = keyPath
        return certificate
    }
}
