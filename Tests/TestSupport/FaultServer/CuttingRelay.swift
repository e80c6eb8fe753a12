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
    ///   - limit: bytes from the server that are passed on; nil until the server closes, whose last bytes are then
    ///     held back as `dropping` says.
    ///   - dropping: drops this many bytes from the end of what the server sends in its last piece: the length of a TLS
    ///     close_notify record, for example.
    package init(
        to target: UInt16, limit: Int? = nil, droppingFromEnd dropping: Int = 0, end: FaultResponse.End = .close
    ) throws {
        let (listener, port) = try Socket.listen()
        self.port = port
        let stop = Gate()
        self.stop = stop
        FaultServer.thread {
            while let client = Socket.accept(listener, stop: stop.descriptor) {
                FaultServer.thread {
                    if let server = try? Socket.connect(port: target) {
                        Self.relay(client, server, limit, dropping, stop)
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

    private static func relay(_ client: Int32, _ server: Int32, _ limit: Int?, _ dropping: Int, _ stop: Gate) {
        var left = limit ?? .max
        var heldBack: [UInt8] = []
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
                heldBack += bytes
                let count = min(max(0, heldBack.count - dropping), left)
                guard sendAll(client, heldBack[..<count], stop) else { return }
                heldBack.removeFirst(count)
                left -= count
            }
        }
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
