import FKMiddleware

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What the system hands over at the start, before Swift makes texts of it.
enum ProcessWords {
    /// The words after the program's name.
    ///
    /// - Throws: `UsageError` for a word that is not UTF-8: Swift would replace its bytes, and a folder of that name would be
    ///   another one. The word itself is not shown: it may be a secret.
    static func read() throws -> [String] {
        var words: [String] = []
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let word = CommandLine.unsafeArgv[index] else { break }
            guard let text = String(validatingCString: word) else {
                let option = words.last.flatMap { $0.utf8.first == UInt8(ascii: "-") ? $0.prefix { $0 != "=" } : nil }
                let place = option.map { ", after \(Escaping.visible($0.prefix(20)))," } ?? ""
                throw UsageError(
                    "Argument \(index)\(place) is not UTF-8 text. Names of files and folders have to be UTF-8 here.")
            }
            words.append(text)
        }
        return words
    }

    /// Opens what was closed among the three standard streams, in a way that fails when it is used: else the next file that
    /// is opened would be taken for it, and a result would be written into a download.
    static func holdStandardStreams() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}
