import FKCore

/// Writes JSON to standard output. Lines about tasks, of which there may be hundreds of thousands, use the writer of the
/// info files, `JSONText`.
struct JSONOutput: Sendable {
    let output: OutputStream

    init(_ output: OutputStream) { self.output = output }

    /// Writes a document over several lines, for scripts and people.
    func document(_ value: JSON) { document(json: value.bytes) }
    func document(json: [UInt8]) { output.write(JSONLayout.line(json, indent: 0)) }

    /// Writes a document on one line.
    func line(_ value: JSON) { line(json: value.bytes) }
    func line(json: [UInt8]) { output.write(JSONLayout.line(json, indent: nil)) }

    /// Writes an array and a line end.
    ///
    /// - Parameters:
    ///   - isIndented: true, the default, writes it over several lines.
    ///   - json: returns the JSON of one element. It is called on several threads.
    func array<Element: Sendable>(
        _ elements: [Element], isIndented: Bool = true, _ json: @Sendable (Element) -> [UInt8]
    ) {
        var array = beginArray(isIndented: isIndented)
        array.write(elements, json)
        array.end()
    }

    /// Begins an array whose elements come a portion at a time. `end()` writes a line end.
    func beginArray(isIndented: Bool = true) -> JSONArrayOutput {
        JSONArrayOutput(output, indent: isIndented ? 0 : nil, after: "\n")
    }

    /// Begins an object with an array as its last member, whose elements come a portion at a time.
    func beginDocument(_ head: JSON, _ name: String) -> JSONArrayOutput {
        // Without the line end and the closing bracket.
        output.write(String(decoding: JSONLayout.text(head.bytes, indent: 0).dropLast(2), as: UTF8.self))
        output.write(",\n  \"\(name)\": ")
        return JSONArrayOutput(output, indent: 2, after: "\n}\n")
    }
}

/// Writes an array a portion at a time, so that the text of a million tasks is never in memory at once. Elements are
/// formatted on all processors.
struct JSONArrayOutput {
    private let output: OutputStream
    private let indent: Int?
    private let after: String
    private(set) var isEmpty = true

    fileprivate init(_ output: OutputStream, indent: Int?, after: String) {
        self.output = output
        self.indent = indent
        self.after = after
    }

    private func lineStart(_ column: Int?) -> String { column.map { "\n" + String(repeating: " ", count: $0) } ?? "" }

    /// - Parameter json: returns the JSON of one element. It is called on several threads.
    mutating func write<Element: Sendable>(_ elements: [Element], _ json: @Sendable (Element) -> [UInt8]) {
        let inner = indent.map { $0 + 2 }
        let separator = "," + lineStart(inner)
        let blocks = stride(from: 0, to: elements.count, by: 256).map { elements[$0..<min($0 + 256, elements.count)] }
        for group in stride(from: 0, to: blocks.count, by: 16).map({ blocks[$0..<min($0 + 16, blocks.count)] }) {
            let texts = Array(group).mappedInParallel { block in
                Array(block.map { JSONLayout.text(json($0), indent: inner) }.joined(separator: separator.utf8))
            }
            for text in texts {
                output.write(isEmpty ? "[" + lineStart(inner) : separator)
                output.write(String(decoding: text, as: UTF8.self))
                isEmpty = false
            }
        }
    }

    func end() { output.write((isEmpty ? "[]" : lineStart(indent) + "]") + after) }
}
