// A file that is passed through to a socket: it is fetched over several connections, checked, and never kept.
//
//     PassThrough URL HOST PORT [SHA-256]
//
// A receiver that is slower than the server slows the server down; at most 8 MiB are on the disk meanwhile. Exit status: 0 when all
// bytes were sent and the digest is right. What the receiver got before an error is a true prefix of the file.

import FKCore
import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ what: String) { description = "\(what): \(String(cString: strerror(errno)))" }
}

/// A connection to the receiver.
struct Receiver {
    let socket: Int32

    init(_ host: String, _ port: String) throws {
        var hints = addrinfo()
        #if canImport(Glibc)
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, port, &hints, &found) == 0, let address = found?.pointee else {
            throw Failure("There is no \(host):\(port)")
        }
        defer { freeaddrinfo(found) }
        let made = Foundation.socket(address.ai_family, address.ai_socktype, address.ai_protocol)
        guard made >= 0, connect(made, address.ai_addr, address.ai_addrlen) == 0 else {
            throw Failure("\(host):\(port) cannot be reached")
        }
        socket = made
    }

    /// Sends all bytes. A server with many receivers would use its own event loop here.
    func send(_ data: Data) throws {
        try data.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let count = write(socket, bytes.baseAddress! + done, bytes.count - done)
                guard count > 0 || errno == EINTR else { throw Failure("The receiver takes no more") }
                done += max(0, count)
            }
        }
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 3 else {
    print("usage: PassThrough URL HOST PORT [SHA-256]")
    exit(2)
}
signal(SIGPIPE, SIG_IGN)
let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("pass-through-\(UUID().uuidString)")
do {
    let checksum = try arguments.dropFirst(3).first.map { try Checksum(.sha256, hex: $0) }
    let receiver = try Receiver(arguments[1], arguments[2])
    let count = try await withDownloader(Configure(workPath: scratch)) { downloader in
        var count = 0
        for try await chunk in try await downloader.stream(arguments[0], checksum: checksum, window: 8 << 20) {
            try receiver.send(chunk)
            count += chunk.count
        }
        return count
    }
    close(receiver.socket)
    print("passed   \(count) bytes")
    try FileManager.default.removeItem(at: scratch)
} catch {
    print("failed: \(error)")
    try? FileManager.default.removeItem(at: scratch)
    exit(1)
}
