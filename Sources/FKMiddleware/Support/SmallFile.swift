import Foundation

extension [UInt8] {
    /// Reads a file of options as a whole: cookies, keys, signatures.
    ///
    /// - Parameters:
    ///   - limit: the maximum length in bytes.
    ///   - name: the kind of file, for the message.
    /// - Throws: `.invalidArgument` if it cannot be read, is not a regular file, or is longer.
    package init(ofFile path: String, limit: Int, named name: String) throws(DownloadError) {
        func refused(_ reason: String) -> DownloadError {
            DownloadError(.invalidArgument, "The \(name) \(path.visible) \(reason).")
        }
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw refused("cannot be read: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw refused("is not a file")
        }
        self = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while count <= limit {
            let count = chunk.withUnsafeMutableBytes { Foundation.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw refused("cannot be read: \(String(cString: strerror(errno)))") }
            if count == 0 { return }
            self += chunk[..<count]
        }
        throw refused("is longer than \(limit >> 20) MiB")
    }
}
