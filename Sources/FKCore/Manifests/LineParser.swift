/// The parser of a form that consists of lines.
protocol LineFormat: Sendable {
    /// Parses the next line, without its end.
    ///
    /// - Parameter line: the number of the line, from 1.
    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError)
    /// Removes and returns the complete entries, which later lines cannot change.
    mutating func drainEntries() -> [Manifest.Entry]
    mutating func finish() throws(ManifestError) -> Manifest
}

/// Divides incoming portions of a list into lines and passes them to the parser of its form.
///
/// A byte order mark is skipped. Lines end with LF, CRLF or CR.
struct LineParser: Sendable {
    /// The maximum length of a line in bytes. A line of a lock file contains the digests of all pieces of a file.
    static let maxLine = 64 << 20

    private let form: Manifest.Form
    private var list: any LineFormat
    /// The beginning of an incomplete line.
    private var carry: [UInt8] = []
    /// True if the last portion ended with CR. A following LF belongs to it.
    private var isAfterCR = false
    private var line = 0

    init(_ form: Manifest.Form, _ list: any LineFormat) {
        self.form = form
        self.list = list
    }

    mutating func parse(_ bytes: [UInt8]) throws(ManifestError) {
        var start = isAfterCR && bytes.first == 0x0a ? 1 : 0
        if !bytes.isEmpty { isAfterCR = false }
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            guard byte == 0x0a || byte == 0x0d else { continue }
            try emit(bytes[start..<index - 1])
            if byte == 0x0d {
                if index == bytes.count { isAfterCR = true } else if bytes[index] == 0x0a { index += 1 }
            }
            start = index
        }
        carry += bytes[start...]
        guard carry.count <= Self.maxLine else {
            throw ManifestError(form: form, line: line + 1, "the line is longer than \(Self.maxLine >> 20) MiB")
        }
    }

    mutating func drainEntries() -> [Manifest.Entry] { list.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        if !carry.isEmpty { try emit([]) }
        return try list.finish()
    }

    private mutating func emit(_ end: ArraySlice<UInt8>) throws(ManifestError) {
        line += 1
        var bytes = end
        if !carry.isEmpty {
            carry += end
            bytes = carry[...]
            carry = []
        }
        if line == 1, bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes = bytes.dropFirst(3) }
        try list.parse(bytes, line)
    }
}
