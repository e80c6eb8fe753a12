import FKMiddleware
import Foundation

/// The arguments and streams that the system passes to the process.
enum ProcessWords {
    /// The words after the program's name.
    ///
    /// - Throws: same as `words`.
    static func read() throws -> [String] {
        #if os(Linux)
            // Swift finds no arguments if a preloaded library has changed the environment before.
            if CommandLine.argc == 0, let file = FileHandle(forReadingAtPath: "/proc/self/cmdline"),
                let bytes = try? file.readToEnd()
            {
                // Each ends with a zero byte.
                let parts = bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
                return try words(parts.map { Array($0) })
            }
        #endif
        return try words(
            (0..<Int(CommandLine.argc)).compactMap { index in
                CommandLine.unsafeArgv[index].map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
            })
    }

    /// The words after the first argument, which is the program's name.
    ///
    /// - Throws: `UsageError` for a word that is not UTF-8: Swift would replace its bytes, which makes it another
    ///   folder or file. The message does not contain the word, which may be a secret.
    static func words(_ arguments: [[UInt8]]) throws -> [String] {
        var words: [String] = []
        for (index, word) in arguments.enumerated().dropFirst() {
            guard let text = String(validating: word, as: UTF8.self) else {
                let option = words.last.flatMap { $0.utf8.first == UInt8(ascii: "-") ? $0.prefix { $0 != "=" } : nil }
                let place = option.map { ", after \($0.prefix(20).visible)," } ?? ""
                throw UsageError(
                    "Argument \(index)\(place) is not UTF-8 text. Names of files and folders have to be UTF-8 here.")
            }
            words.append(text)
        }
        return words
    }

    /// Opens those of the three standard streams that are closed, in a way that makes their use fail. Otherwise the
    /// next opened file would get their number, and output could be written into a download.
    static func holdStandardStreams() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}
