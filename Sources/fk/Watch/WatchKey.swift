/// A key that was typed into the full-screen view.
enum WatchKey: Sendable, Hashable {
    case character(Character)
    case enter
    case escape
    case backspace
    case up
    case down
    case pageUp
    case pageDown
    case home
    case end
    /// The mouse wheel, one step.
    case wheelUp
    case wheelDown
    /// A click on a row of the screen, 0 at the top.
    case click(row: Int)
    /// Ctrl-L: draws everything again.
    case redraw
}

/// Turns the bytes of a terminal into keys. Sequences of keys without a meaning are skipped.
///
/// Escape alone and the beginning of a sequence are the same byte: `flush` decides, when nothing follows for a moment.
struct WatchKeyParser: Sendable {
    private var bytes: [UInt8] = []

    /// True while the beginning of a key has come.
    var isPending: Bool { !bytes.isEmpty }

    /// The keys that are complete with these bytes.
    mutating func feed(_ more: some Sequence<UInt8>) -> [WatchKey] {
        bytes += more
        var keys: [WatchKey] = []
        while !bytes.isEmpty, let (key, length) = first() {
            bytes.removeFirst(length)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// The keys of bytes after which nothing followed.
    mutating func flush() -> [WatchKey] {
        guard let first = bytes.first else { return [] }
        if first == 0x1b, bytes.count == 1 {
            bytes = []
            return [.escape]
        }
        // A sequence that never ended.
        let rest = bytes.dropFirst()
        bytes = []
        return feed(rest)
    }

    /// The first key and its bytes; a nil key has no meaning. nil if more bytes are needed.
    private func first() -> (WatchKey?, Int)? {
        switch bytes[0] {
        case 0x1b: return sequence()
        case 0x0d, 0x0a: return (.enter, 1)
        case 0x7f, 0x08: return (.backspace, 1)
        case 0x0c: return (.redraw, 1)
        case ..<0x20: return (nil, 1)
        case ..<0x80: return (.character(Character(Unicode.Scalar(bytes[0]))), 1)
        default:
            let length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : bytes[0] >= 0xc2 ? 2 : 1
            guard bytes.count >= length else { return nil }
            return (String(validating: bytes[..<length], as: UTF8.self)?.first.map(WatchKey.character), length)
        }
    }

    /// `<0;12;5M`: a button, a column and a row from 1 on; `m` releases it.
    private func mouse(_ text: String) -> WatchKey? {
        let numbers = text.dropFirst().dropLast().split(separator: ";").compactMap { Int($0) }
        guard numbers.count == 3, text.last == "M" else { return nil }
        switch numbers[0] {
        case 0: return .click(row: numbers[2] - 1)
        case 64: return .wheelUp
        case 65: return .wheelDown
        default: return nil
        }
    }

    private func sequence() -> (WatchKey?, Int)? {
        guard bytes.count > 1 else { return nil }
        guard bytes[1] == UInt8(ascii: "[") || bytes[1] == UInt8(ascii: "O") else { return (.escape, 1) }
        guard let end = bytes.dropFirst(2).firstIndex(where: { (0x40...0x7e).contains($0) }) else {
            return bytes.count > 16 ? (nil, bytes.count) : nil
        }
        let text = String(decoding: bytes[2...end], as: UTF8.self)
        if text.hasPrefix("<") { return (mouse(text), end + 1) }
        let key: WatchKey? =
            switch text {
            case "A": .up
            case "B": .down
            case "H", "1~", "7~": .home
            case "F", "4~", "8~": .end
            case "5~": .pageUp
            case "6~": .pageDown
            default: nil
            }
        return (key, end + 1)
    }
}
