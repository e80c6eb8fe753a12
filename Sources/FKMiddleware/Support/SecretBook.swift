import Foundation

/// The values of secrets, which are masked wherever they stand in a text: in a sentence of libcurl, in the answer of a server
/// or of a program, in a line of a log.
///
/// A text is searched for all values at once (Aho, Corasick), in a time that is linear in the length of the text and in that of
/// all values together.
package struct SecretBook: Sendable {
    /// Shorter values occur by chance in other words, and are not masked.
    package static let minLength = 4

    /// The values, as they may stand in a text.
    private let values: Set<String>
    private let automaton: Automaton

    /// Creates a book of values. Those shorter than `minLength` are left out.
    package init(_ values: Set<String>) {
        self.values = values.filter { $0.utf8.count >= Self.minLength }
        automaton = Automaton(self.values)
    }

    /// True if there is nothing to mask.
    package var isEmpty: Bool { values.isEmpty }

    /// The text with `***` in place of each value.
    ///
    /// - Parameter isCut: true if the text may end in the middle of a value, so that the beginning of one is masked there too. The
    ///   default is false.
    package func mask(_ text: String, isCut: Bool = false) -> String {
        guard !isEmpty else { return text }
        let bytes = Array(text.utf8)
        let hidden = automaton.find(in: bytes, isCut: isCut)
        guard !hidden.isEmpty else { return text }
        var masked: [UInt8] = []
        var end = 0
        for range in hidden.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            // One value may be a part of another.
            if range.lowerBound >= end {
                masked += bytes[end..<range.lowerBound]
                masked += "***".utf8
            }
            end = max(end, range.upperBound)
        }
        return String(decoding: masked + bytes[end...], as: UTF8.self)
    }

    /// The error with its message, its reason and its URL masked. The URL is masked as a URL already, but a server may have brought a
    /// secret into it, by a redirect.
    package func mask(_ error: DownloadError) -> DownloadError {
        guard !isEmpty else { return error }
        var error = error
        error.message = mask(error.message)
        error.underlying = error.underlying.map { mask($0) }
        error.url = error.url.map { mask($0) }
        return error
    }

    // MARK: Values

    /// The secrets of a URL: its login as it is written and decoded, also if the text is not a valid URL, and the values of
    /// secret query items.
    package static func values(ofURL url: String) -> Set<String> {
        var values: Set<String> = []
        // Most URLs have neither a login nor a query, and a task with mirrors has many.
        guard url.utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "?") }) else { return values }
        if let login = url.urlLogin { values = Self.values(ofLogin: url[login]) }
        for item in (URLParts(url).query ?? "").split(whereSeparator: { $0 == "&" || $0 == ";" }) {
            guard let equals = item.firstIndex(of: "=") else { continue }
            let (name, value) = (String(item[..<equals]), String(item[item.index(after: equals)...]))
            guard (name.removingPercentEncoding ?? name).isSecretName else { continue }
            // Shorter ones are words.
            if value.utf8.count >= 8 { values.formUnion([value, value.removingPercentEncoding ?? value]) }
        }
        return values
    }

    /// The secrets of a proxy's address.
    package static func values(ofProxy proxy: String) -> Set<String> {
        guard let at = proxy.lastIndex(of: "@") else { return [] }
        let start = proxy.range(of: "://").flatMap { $0.upperBound <= at ? $0.upperBound : nil } ?? proxy.startIndex
        return values(ofLogin: proxy[start..<at])
    }

    /// The secrets of a header field's value: the whole, the token without its scheme, the values of cookies, and the password
    /// of a Basic login.
    ///
    /// - Parameter shortest: parts of the value with fewer bytes are left out: those of a signature are words such as `host`.
    package static func values(ofField value: String, partsFrom shortest: Int = minLength) -> Set<String> {
        var values: Set<String> = [value]
        let parts = value.utf8.split { separators.contains($0) }.compactMap { String(Substring($0)) }
        values.formUnion(parts.filter { $0.utf8.count >= shortest && !schemes.contains($0.lowercased()) })
        if value.utf8.count < 4_096, value.lowercased().hasPrefix("basic "),
            let login = Data(base64Encoded: value.dropFirst(6).trimmingCharacters(in: .whitespaces))
        {
            values.formUnion(Self.values(ofLogin: String(decoding: login, as: UTF8.self)[...]))
        }
        return values.filter { !schemes.contains($0.lowercased()) }
    }

    /// The secrets of `user:password`: the password, as written and decoded, and the login as Basic authentication sends it. A
    /// login without a password is a secret itself, such as a token.
    package static func values(ofLogin login: Substring) -> Set<String> {
        let text = String(login)
        let colon = text.firstIndex(of: ":")
        let password = colon.map { String(text[text.index(after: $0)...]) } ?? text
        let decoded = text.removingPercentEncoding ?? text
        var values: Set<String> = [
            password, password.removingPercentEncoding ?? password, Data(decoded.utf8).base64EncodedString(),
            Data(text.utf8).base64EncodedString(),
        ]
        if colon != nil { values.formUnion([text, decoded]) }
        return values
    }

    private static let separators = Set(" ;,=".utf8)
    private static let schemes: Set<String> = ["basic", "bearer", "digest", "token"]
}

/// Finds any number of values in one pass over a text.
private struct Automaton: Sendable {
    /// The state after a byte in a state, by `state << 8 | byte`. State 0 has seen nothing of any value.
    private var next: [UInt64: UInt32] = [:]
    /// For each state, the one of its longest true ending that begins a value.
    private var fallback: [UInt32] = [0]
    /// For each state, the number of bytes of a value that it has seen.
    private var depth: [Int32] = [0]
    /// For each state, the length of the longest value that ends in it; 0 for none.
    private var ending: [Int32] = [0]

    init(_ values: Set<String>) {
        var parents: [(state: UInt32, byte: UInt8)] = [(0, 0)]
        for value in values {
            var state: UInt32 = 0
            for byte in value.utf8 {
                let key = UInt64(state) << 8 | UInt64(byte)
                if let known = next[key] {
                    state = known
                } else {
                    let new = UInt32(depth.count)
                    next[key] = new
                    parents.append((state, byte))
                    depth.append(depth[Int(state)] + 1)
                    fallback.append(0)
                    ending.append(0)
                    state = new
                }
            }
            ending[Int(state)] = depth[Int(state)]
        }
        // In the order of their depths, because a fallback is always shorter.
        for state in depth.indices.sorted(by: { depth[$0] < depth[$1] }) where depth[state] > 1 {
            let (parent, byte) = parents[state]
            fallback[state] = step(fallback[Int(parent)], byte)
            ending[state] = max(ending[state], ending[Int(fallback[state])])
        }
    }

    private func step(_ state: UInt32, _ byte: UInt8) -> UInt32 {
        var state = state
        while true {
            if let found = next[UInt64(state) << 8 | UInt64(byte)] { return found }
            if state == 0 { return 0 }
            state = fallback[Int(state)]
        }
    }

    func find(in bytes: [UInt8], isCut: Bool) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var state: UInt32 = 0
        for (index, byte) in bytes.enumerated() {
            state = step(state, byte)
            let length = Int(ending[Int(state)])
            if length > 0 { found.append(index + 1 - length..<index + 1) }
        }
        let rest = Int(depth[Int(state)])
        if isCut, rest >= SecretBook.minLength { found.append(bytes.count - rest..<bytes.count) }
        return found
    }
}
