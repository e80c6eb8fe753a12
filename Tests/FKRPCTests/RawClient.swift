import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A TCP connection to 127.0.0.1 that sends and receives bytes as they are. Its calls block for at most 20 s.
final class RawClient: Sendable {
    struct Failure: Error { var call: String }

    private let descriptor: Int32

    init(port: Int) throws {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw Failure(call: "socket") }
        var time = timeval(tv_sec: 20, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
        }
        guard status == 0 else { throw Failure(call: "connect") }
    }

    deinit { close(descriptor) }

    /// Sends as much as the other side takes; false when it does not take all.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                Self.write(descriptor, $0.baseAddress.map { $0 + done }, bytes.count - done)
            }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    /// Without the signal that ends the process when the other side has closed.
    private static func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
        #if canImport(Glibc)
            Glibc.send(descriptor, bytes, count, Int32(MSG_NOSIGNAL))
        #else
            Darwin.send(descriptor, bytes, count, 0)
        #endif
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// The next bytes; empty at the end, after 20 s of silence, and after an error.
    func receive(_ most: Int = 65_536) -> [UInt8] { (try? read(most)) ?? [] }

    private func read(_ most: Int) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: most)
        while true {
            let count = recv(descriptor, &buffer, most, 0)
            if count >= 0 { return Array(buffer.prefix(count)) }
            guard errno == EINTR else { throw Failure(call: "recv: \(String(cString: strerror(errno)))") }
        }
    }

    func receive(exactly count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let part = receive(count - bytes.count)
            if part.isEmpty { return nil }
            bytes += part
        }
        return bytes
    }

    /// Everything until the other side closes.
    ///
    /// - Throws: `Failure` if it resets the connection, or sends nothing for 20 s.
    func receiveAll() throws -> String {
        var bytes: [UInt8] = []
        while true {
            let part = try read(65_536)
            if part.isEmpty { return String(decoding: bytes, as: UTF8.self) }
            bytes += part
        }
    }

    /// The head of an answer.
    func receiveHead() -> String {
        var bytes: [UInt8] = []
        while !String(decoding: bytes, as: UTF8.self).hasSuffix("\r\n\r\n"), let byte = receive(exactly: 1) {
            bytes += byte
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: WebSocket

    func upgrade(_ fields: String = "") -> String {
        send(
            "GET /jsonrpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\(fields)\r\n")
        return receiveHead()
    }

    /// A masked frame of a client. A mask of zeros leaves the bytes as they are.
    static func frame(_ bytes: [UInt8], opcode: UInt8 = 1, isLast: Bool = true) -> [UInt8] {
        var frame: [UInt8] = [opcode | (isLast ? 0x80 : 0)]
        switch bytes.count {
        case ..<126: frame.append(0x80 | UInt8(bytes.count))
        case ..<65_536: frame += [0x80 | 126, UInt8(bytes.count >> 8), UInt8(bytes.count & 255)]
        default: frame += [0x80 | 127] + (0..<8).map { UInt8((bytes.count >> (8 * (7 - $0))) & 255) }
        }
        return frame + [0, 0, 0, 0] + bytes
    }

    func sendMessage(_ text: String) { send(Self.frame(Array(text.utf8))) }

    /// The next message, its frames joined; nil when the connection ends.
    func receiveMessage() -> String? {
        var message: [UInt8] = []
        while let head = receive(exactly: 2) {
            var length = Int(head[1] & 0x7f)
            if length > 125 {
                guard let more = receive(exactly: length == 126 ? 2 : 8) else { return nil }
                length = more.reduce(0) { $0 << 8 | Int($1) }
            }
            guard let body = length == 0 ? [] : receive(exactly: length) else { return nil }
            switch head[0] & 0x0f {
            case 8: return nil
            case 9, 10: continue
            default: message += body
            }
            if head[0] & 0x80 != 0 { return String(decoding: message, as: UTF8.self) }
        }
        return nil
    }
}
