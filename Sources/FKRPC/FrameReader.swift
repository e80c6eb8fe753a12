/// Reads the messages of a WebSocket from a client's bytes (RFC 6455).
package struct FrameReader: Sendable {
    /// What the bytes contain next.
    package enum Step: Sendable, Hashable {
        /// More bytes are needed.
        case wait
        /// A whole text or binary message.
        case message([UInt8])
        /// A ping. Its bytes are the answer.
        case ping([UInt8])
        case pong
        /// The client closes, with this code if it sent one.
        case close(UInt16?)
        /// The bytes break the protocol. The connection is to be closed with this code.
        case fault(UInt16)
    }

    /// Codes of RFC 6455, 7.4.1.
    package enum Code {
        package static let protocolError: UInt16 = 1_002
        /// A text is not UTF-8.
        package static let wrongText: UInt16 = 1_007
        package static let tooLarge: UInt16 = 1_009
    }

    private let maxMessage: Int
    private var bytes: [UInt8]
    /// The bytes before it are done with.
    private var start = 0
    /// The parts of a message so far; nil outside a message.
    private var message: [UInt8]?
    private var isText = false

    /// - Parameter bytes: bytes that came with the request for the WebSocket.
    package init(maxMessage: Int, _ bytes: [UInt8] = []) {
        self.maxMessage = maxMessage
        self.bytes = bytes
    }

    /// The number of bytes that wait.
    package var count: Int { bytes.count - start }

    /// True if no message has begun to arrive.
    package var isBetween: Bool { count == 0 && message == nil }

    package mutating func append(_ new: some Sequence<UInt8>) { bytes += new }

    /// The next step. Frames without an effect are skipped. After a fault nothing follows.
    package mutating func next() -> Step {
        while true {
            switch frame() {
            case .wait: return .wait
            case .fault(let code): return .fault(code)
            case .whole(let opcode, let isLast, let payload):
                if let step = handle(opcode, isLast, payload) { return step }
            }
        }
    }

    private enum Frame {
        case wait
        case fault(UInt16)
        case whole(opcode: UInt8, isLast: Bool, payload: [UInt8])
    }

    /// The next frame. Everything is checked that its head says, before its bytes are waited for.
    private mutating func frame() -> Frame {
        guard count >= 2 else { return .wait }
        let (first, second) = (bytes[start], bytes[start + 1])
        let opcode = first & 0x0f
        let isLast = first & 0x80 != 0
        // Reserved bits, and frames that are not masked.
        guard first & 0x70 == 0, second & 0x80 != 0 else { return .fault(Code.protocolError) }
        let isControl = opcode >= 8
        switch opcode {
        case 0 where message != nil, 1 where message == nil, 2 where message == nil, 8, 9, 10: break
        default: return .fault(Code.protocolError)
        }
        var length = UInt64(second & 0x7f)
        guard !isControl || length < 126 && isLast else { return .fault(Code.protocolError) }
        let more = length == 127 ? 8 : length == 126 ? 2 : 0
        guard count >= 2 + more else { return .wait }
        if more > 0 { length = bytes[start + 2..<start + 2 + more].reduce(0) { $0 << 8 | UInt64($1) } }
        guard length >> 63 == 0 else { return .fault(Code.protocolError) }
        guard length <= UInt64(maxMessage - (isControl ? 0 : message?.count ?? 0)) else { return .fault(Code.tooLarge) }
        let head = start + 2 + more + 4
        guard bytes.count - head >= Int(length) else { return .wait }
        var payload = Array(bytes[head..<head + Int(length)])
        for index in payload.indices { payload[index] ^= bytes[head - 4 + index & 3] }
        start = head + Int(length)
        if start == bytes.count || start > 64 << 10 {
            bytes = Array(bytes[start...])
            start = 0
        }
        return .whole(opcode: opcode, isLast: isLast, payload: payload)
    }

    /// The effect of a frame; nil if there is none yet.
    private mutating func handle(_ opcode: UInt8, _ isLast: Bool, _ payload: [UInt8]) -> Step? {
        switch opcode {
        case 8: return Self.close(payload)
        case 9: return .ping(payload)
        case 10: return .pong
        default: break
        }
        if opcode != 0 { isText = opcode == 1 }
        var whole = message ?? []
        message = nil
        whole += payload
        guard isLast else {
            message = whole
            return nil
        }
        guard !isText || String(validating: whole, as: UTF8.self) != nil else { return .fault(Code.wrongText) }
        return .message(whole)
    }

    private static func close(_ payload: [UInt8]) -> Step {
        guard !payload.isEmpty else { return .close(nil) }
        guard payload.count > 1 else { return .fault(Code.protocolError) }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        switch code {
        case 1_000...1_003, 1_007...1_014, 3_000...4_999: return .close(code)
        default: return .fault(Code.protocolError)
        }
    }

    // MARK: Writing

    /// The kinds of frames that a server sends.
    package enum Kind: UInt8, Sendable {
        case text = 1
        case close = 8
        case ping = 9
        case pong = 10
    }

    /// The head of a server's frame.
    package static func head(_ kind: Kind, count: Int) -> [UInt8] {
        let first = 0x80 | kind.rawValue
        switch count {
        case ..<126: return [first, UInt8(count)]
        case ..<65_536: return [first, 126, UInt8(count >> 8), UInt8(count & 0xff)]
        default: return [first, 127] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (8 * (7 - $0))) }
        }
    }
}
