import FKMiddleware

/// A URL that stands for several, as curl writes them: `[1-3]`, `[001-100]`, `[a-z]`, with a step `[0-90:10]`, and `{one,two}`.
enum URLPattern {
    /// The most URLs that one pattern may give.
    static let limit = 100_000

    struct Fault: Error {
        var reason: String
    }

    private enum Piece {
        case text(String)
        case choices([String])
    }

    /// The URLs of a pattern, in the order of their values; the last part changes first.
    ///
    /// - Throws: `Fault` for a part that is none, and for more than `limit` URLs.
    static func expand(_ text: String) throws(Fault) -> [String] {
        var urls = [""]
        for piece in try pieces(of: text) {
            switch piece {
            case .text(let text): urls = urls.map { $0 + text }
            case .choices(let choices):
                guard urls.count * choices.count <= limit else {
                    throw Fault(reason: "it stands for more than \(limit) addresses")
                }
                urls = urls.flatMap { url in choices.map { url + $0 } }
            }
        }
        return urls
    }

    /// The first part of a URL that curl would expand; nil without one.
    static func part(of url: String) -> String? {
        // In the authority, brackets are an IPv6 address.
        guard let start = url.range(of: "://")?.upperBound, let path = url[start...].firstIndex(of: "/") else {
            return nil
        }
        var rest = url[path...]
        while let open = rest.firstIndex(where: { $0 == "[" || $0 == "{" }) {
            rest = rest[rest.index(after: open)...]
            guard let close = url[open...].firstIndex(of: url[open] == "[" ? "]" : "}") else { continue }
            let text = String(url[open...close])
            if text.hasPrefix("[") || text.contains(","), (try? choices(of: text)) != nil { return text }
        }
        return nil
    }

    private static func pieces(of text: String) throws(Fault) -> [Piece] {
        var pieces: [Piece] = []
        var rest = text[...]
        if let start = text.range(of: "://")?.upperBound, let path = text[start...].firstIndex(of: "/") {
            pieces.append(.text(String(text[..<path])))
            rest = text[path...]
        }
        while let open = rest.firstIndex(where: { $0 == "[" || $0 == "{" }) {
            let end: Character = rest[open] == "[" ? "]" : "}"
            guard let close = rest[open...].firstIndex(of: end) else {
                throw Fault(reason: "'\(rest[open...].prefix(60).visible)' has no '\(end)'")
            }
            pieces.append(.text(String(rest[..<open])))
            pieces.append(.choices(try choices(of: String(rest[open...close]))))
            rest = rest[rest.index(after: close)...]
        }
        return pieces + [.text(String(rest))]
    }

    private static func choices(of part: String) throws(Fault) -> [String] {
        let inner = String(part.dropFirst().dropLast())
        if part.hasPrefix("{") { return inner.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
        guard let (first, last, step) = range(inner) else {
            throw Fault(reason: "'\(part.prefix(60).visible)' is no range: give [1-10], [001-100:5] or [a-z]")
        }
        let isNumeric = isNumber(first)
        let bounds = isNumeric ? (Int(first), Int(last)) : (code(first), code(last))
        guard isNumeric == isNumber(last), let low = bounds.0, let high = bounds.1, low <= high, step > 0
        else {
            throw Fault(reason: "'\(part.prefix(60).visible)' has no values: it goes from low to high")
        }
        guard (high - low) / step < limit else { throw Fault(reason: "it stands for more than \(limit) addresses") }
        return stride(from: low, through: high, by: step).map { value in
            guard isNumeric else { return UnicodeScalar(UInt8(value)).description }
            let digits = String(value)
            // `[001-100]` keeps the width of its first number.
            return first.hasPrefix("0")
                ? String(repeating: "0", count: max(0, first.count - digits.count)) + digits : digits
        }
    }

    /// The parts of `FIRST-LAST` or `FIRST-LAST:STEP`, numbers of at most 18 digits or single letters; nil for another text.
    private static func range(_ text: String) -> (first: String, last: String, step: Int)? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard ends.count == 2, ends.allSatisfy({ isNumber($0) && $0.utf8.count <= 18 || isLetter($0) }) else {
            return nil
        }
        guard parts.count == 2 else { return (ends[0], ends[1], 1) }
        let step = String(parts[1])
        return isNumber(step) && step.utf8.count <= 9 ? (ends[0], ends[1], Int(step) ?? 1) : nil
    }

    private static func isNumber(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func isLetter(_ text: String) -> Bool {
        text.utf8.count == 1 && text.utf8.allSatisfy { (0x61...0x7a).contains($0 | 0x20) }
    }

    private static func code(_ letter: String) -> Int? { letter.utf8.first.map(Int.init) }
}
