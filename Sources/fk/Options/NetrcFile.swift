import FKCore
import FKMiddleware
import Foundation

/// The file of `--netrc` and `--login-host`. libcurl ignores an unreadable file; the server's refusal would then look like a wrong login.
enum NetrcFile {
    /// Checks that the file can be read.
    ///
    /// - Parameter host: the login host, for which the file must have a login; nil, the default, for `--netrc`.
    /// - Throws: `UsageError` with the file's path.
    static func check(_ arguments: ParsedArguments, _ context: CommandContext, host: String? = nil) throws {
        let option = host == nil ? "--netrc" : "--login-host"
        // libcurl looks in HOME too.
        let home = context.environment["HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? NSHomeDirectory()
        let path = home + "/.netrc"
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw arguments.error("\(option): \(path.visible) cannot be read: \(String(cString: strerror(errno))).")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw arguments.error("\(option): \(path.visible) is not a file.")
        }
        guard let name = host?.loginHostName, status.st_size <= 1 << 20 else { return }
        guard let bytes = try? [UInt8](ofFile: path, limit: 1 << 20, named: "file of logins") else { return }
        guard has(name, in: String(decoding: bytes, as: UTF8.self)) else {
            throw arguments.error(
                "--login-host: \(path.visible) has no login for \(name). Add a line: machine \(name) login NAME password PASSWORD"
            )
        }
    }

    /// True if the file names the host, or has a `default`.
    static func has(_ host: String, in text: String) -> Bool {
        let words = text.split(whereSeparator: \.isWhitespace)
        return words.contains("default")
            || zip(words, words.dropFirst()).contains {
                $0 == "machine" && $1.lowercased() == host.lowercased()
            }
    }
}
