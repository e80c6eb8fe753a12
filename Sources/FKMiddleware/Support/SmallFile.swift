import Foundation

/// Files of options that are read as a whole: cookies, keys, signatures.
package enum SmallFile {
    /// Reads a file.
    ///
    /// - Parameters:
    ///   - limit: the maximum length in bytes.
    ///   - name: the kind of file, for the message.
    /// - Throws: `.invalidArgument` if it cannot be read, is not a regular file, or is longer.
    package static func read(_ path: String, limit: Int, named name: String) throws(DownloadError) -> [UInt8] {
        func refused(_ reason: String) -> DownloadError {
            DownloadError(.invalidArgument, "The \(name) \(Escaping.visible(path)) \(reason).")
        }
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw refused("cannot be read: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw refused("is not a file")
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= limit {
            let count = chunk.withUnsafeMutableBytes { Foundation.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw refused("cannot be read: \(String(cString: strerror(errno)))") }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
        throw refused("is longer than \(limit >> 20) MiB")
    }
}
