import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Passes bytes between a client and a server on this machine and cuts the connection after a given number of bytes
/// from the server. In front of a TLS server it makes what only a network can: an encrypted stream that just stops.
package final class CuttingRelay: Sendable {
    package let port: UInt16
    private let stop: Gate

    /// - Parameters:
    ///   - target: the server's port on 127.0.0.1.
    ///   - limit: bytes from the server that are passed on; nil passes on all.
    ///   - dropsAlerts: keeps TLS alerts from the client, so that it never sees a close_notify.
    package init(
        to target: UInt16, limit: Int? = nil, dropsAlerts: Bool = false, end: FaultResponse.End = .close
    ) throws {
        let (listener, port) = try Socket.listen()
        self.port = port
        let stop = Gate()
        self.stop = stop
        FaultServer.thread {
            while let client = Socket.accept(listener, stop: stop.descriptor) {
                FaultServer.thread {
                    if let server = try? Socket.connect(port: target) {
                        Self.relay(client, server, limit, dropsAlerts, stop)
                        close(server)
                    }
                    if case .reset = end { Socket.setReset(client) }
                    close(client)
                }
            }
            close(listener)
        }
    }

    deinit { stop.open() }

    private static func relay(_ client: Int32, _ server: Int32, _ limit: Int?, _ dropsAlerts: Bool, _ stop: Gate) {
        var left = limit ?? .max
        var received: [UInt8] = []
        while left > 0 {
            var polled = [client, server, stop.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), -1) > 0, polled[2].revents == 0 else { return }
            if polled[0].revents != 0 {
                let bytes = Socket.read(client)
                guard !bytes.isEmpty, sendAll(server, bytes[...], stop) else { return }
            }
            if polled[1].revents != 0 {
                let bytes = Socket.read(server)
                guard !bytes.isEmpty else { return }
                received += bytes
                let passed = (dropsAlerts ? takeRecords(from: &received) : take(all: &received)).prefix(left)
                guard sendAll(client, passed, stop) else { return }
                left -= passed.count
            }
        }
    }

    private static func take(all bytes: inout [UInt8]) -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }

    /// Takes the complete TLS records and leaves out alerts: type 21 in TLS 1.2; in TLS 1.3 an encrypted record of just
    /// the length that an alert has (RFC 8446 section 5.2: 2 bytes, its type, and 16 bytes of tag).
    private static func takeRecords(from bytes: inout [UInt8]) -> [UInt8] {
        var passed: [UInt8] = []
        var rest = bytes[...]
        while rest.count >= 5 {
            let start = rest.startIndex
            let length = Int(rest[start + 3]) << 8 | Int(rest[start + 4])
            guard rest.count >= 5 + length else { break }
            let isAlert = rest[start] == 21 || (rest[start] == 23 && length == 19)
            if !isAlert { passed += rest.prefix(5 + length) }
            rest = rest.dropFirst(5 + length)
        }
        bytes = Array(rest)
        return passed
    }

    private static func sendAll(_ descriptor: Int32, _ bytes: ArraySlice<UInt8>, _ stop: Gate) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                switch Socket.send(descriptor, UnsafeRawBufferPointer(rebasing: rest)) {
                case .some(let count): rest = rest.dropFirst(count)
                case .full:
                    guard Socket.wait(for: descriptor, POLLOUT, stop: [stop.descriptor]) == .ready else { return false }
                case .failed: return false
                }
            }
            return true
        }
    }
}
