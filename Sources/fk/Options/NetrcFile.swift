import FKCore
import FKMiddleware
import Foundation

/// The file of `--netrc`. libcurl ignores an unreadable file; the server's refusal would then look like a wrong login.
enum NetrcFile {
    /// Checks that the file can be read.
    ///
    /// - Throws: `UsageError` with the file's path.
    static func check(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        // libcurl looks in HOME too.
        let home = context.environment["HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? NSHomeDirectory()
        let path = home + "/.netrc"
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw arguments.error(
                "--netrc: \(Escaping.visible(path)) cannot be read: \(String(cString: strerror(errno))).")
        }
        close(descriptor)
    }
}
