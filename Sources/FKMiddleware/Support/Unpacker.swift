import CSystem
import Foundation

/// Unpacks a compressed list with the program that the system has for its form: `gzip`, `zstd`, `xz` or `bzip2`.
package enum Unpacker: String, Sendable, CaseIterable {
    case gzip
    case zstd
    case xz
    case bzip2

    /// Recognises the form by the first 6 bytes; nil for any other data.
    package init?(_ head: some Collection<UInt8>) {
        let head = Array(head.prefix(6))
        guard let match = Self.allCases.first(where: { head.starts(with: $0.magic) }) else { return nil }
        self = match
    }

    private var magic: [UInt8] {
        switch self {
        case .gzip: [0x1f, 0x8b]
        case .zstd: [0x28, 0xb5, 0x2f, 0xfd]
        case .xz: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]
        case .bzip2: Array("BZh".utf8)
        }
    }

    private var suffixes: [String] {
        switch self {
        case .gzip: [".gz", ".gzip"]
        case .zstd: [".zst", ".zstd"]
        case .xz: [".xz"]
        case .bzip2: [".bz2"]
        }
    }

    /// The name of the file inside: `MD5SUMS` for `MD5SUMS.gz`.
    package func plainName(_ name: String) -> String {
        let suffix = suffixes.first { name.lowercased().hasSuffix($0) && name.utf8.count > $0.utf8.count }
        return String(name.dropLast(suffix?.count ?? 0))
    }

    /// A list that cannot be unpacked.
    package struct Fault: Error {
        /// The reason, without a final full stop.
        package let reason: String
    }

    private func path() throws(Fault) -> String {
        if let fault = OtherPrograms.fault {
            throw Fault(reason: "the list is compressed with \(rawValue), and \(fault)")
        }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        for folder in folders + ["/usr/local/bin", "/usr/bin", "/bin"]
        where folder.hasPrefix("/") && access("\(folder)/\(rawValue)", X_OK) == 0 {
            return "\(folder)/\(rawValue)"
        }
        throw Fault(
            reason:
                "the list is compressed with \(rawValue), and that program is not installed: install it, or unpack the list first"
        )
    }

    /// Unpacks a file.
    ///
    /// - Parameters:
    ///   - descriptor: the file, at its beginning.
    ///   - take: receives the unpacked bytes, a portion at a time. It may throw to end the program.
    /// - Throws: `Fault` if the program is missing or does not accept the data; the errors of `take`.
    package func unpack(_ descriptor: Int32, _ take: ([UInt8]) throws -> Void) throws {
        let program = try path()
        var ends: [Int32] = [0, 0]
        guard fk_pipe(&ends) == 0 else { throw Self.failed(errno) }
        defer { close(ends[0]) }
        let none = open("/dev/null", O_WRONLY | O_CLOEXEC)
        // `fk_spawn` takes descriptors above 2.
        let high = [descriptor, ends[1], none].map { fcntl($0, F_DUPFD_CLOEXEC, 3) }
        close(ends[1])
        if none >= 0 { close(none) }
        var pid: pid_t = 0
        let code = CStrings.with([rawValue, "-dc"]) { arguments in
            CStrings.with(["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"]) {
                fk_spawn(&pid, program, arguments, $0, "/", high)
            }
        }
        for descriptor in high where descriptor >= 0 { close(descriptor) }
        guard code == 0 else { throw Self.failed(code) }
        var status: Int32 = 0
        defer { if pid > 0 { kill(pid, SIGKILL) } }
        func wait() {
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            pid = 0
        }
        do {
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = bytes.withUnsafeMutableBytes { read(ends[0], $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                try take(Array(bytes[..<count]))
            }
        } catch {
            kill(pid, SIGKILL)
            wait()
            throw error
        }
        wait()
        // Two is a warning, such as bytes behind the end.
        guard status & 0x7f == 0, [0, 2].contains(status >> 8) else {
            throw Fault(reason: "the list is compressed with \(rawValue), and its data is damaged or not whole")
        }
    }

    /// Unpacks bytes in memory.
    ///
    /// - Parameter limit: the most bytes of the result.
    /// - Throws: `Fault`, also for a longer result.
    package func unpacked(_ bytes: [UInt8], limit: Int) throws -> [UInt8] {
        var template = Array((NSTemporaryDirectory() as NSString).appendingPathComponent("fk-list-XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw Self.failed(errno) }
        defer { close(descriptor) }
        template.withUnsafeBufferPointer { _ = unlink($0.baseAddress!) }
        var position = 0
        while position < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + position, $0.count - position) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.failed(errno) }
            position += count
        }
        lseek(descriptor, 0, SEEK_SET)
        var result: [UInt8] = []
        try unpack(descriptor) { portion in
            result += portion
            guard result.count <= limit else {
                throw Fault(reason: "the unpacked list is longer than \(limit >> 20) MiB")
            }
        }
        return result
    }

    private static func failed(_ code: Int32) -> Fault {
        Fault(reason: "the list cannot be unpacked: \(String(cString: strerror(code)))")
    }
}
