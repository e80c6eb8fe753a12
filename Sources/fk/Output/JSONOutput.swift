import FKCore

/// Writes JSON to standard output. Documents are `Encodable` and use the encoder of the store. Lines about tasks, of
/// which there may be hundreds of thousands, use the writer of the info files, `JSONText`: `JSONEncoder` takes 14 us
/// for a task, as long as reading its record.
struct JSONOutput: Sendable {
    let output: OutputStream

    init(_ output: OutputStream) { self.output = output }

    /// Encodes a value.
    ///
    /// - Parameter value: only texts, flags and finite numbers, which always have a JSON form.
    static func encode(_ value: some Encodable) -> [UInt8] {
        guard let json = try? StoreJSON.encode(value) else { preconditionFailure("\(type(of: value)) is not JSON.") }
        return json
    }

    /// Writes a document over several lines, for scripts and people.
    func document(_ value: some Encodable) { document(json: Self.encode(value)) }
    func document(json: [UInt8]) { output.write(JSONLayout.line(json, indent: 0)) }

    /// Writes a document on one line.
    func line(_ value: some Encodable) { line(json: Self.encode(value)) }
    func line(json: [UInt8]) { output.write(JSONLayout.line(json, indent: nil)) }

    /// Writes an array and a line end.
    ///
    /// - Parameters:
    ///   - isIndented: true, the default, writes it over several lines.
    ///   - json: returns the JSON of one element. It is called on several threads.
    func array<Element: Sendable>(
        _ elements: [Element], isIndented: Bool = true, _ json: @Sendable (Element) -> [UInt8]
    ) {
        write(elements, indent: isIndented ? 0 : nil, json)
        output.write("\n")
    }

    /// Writes an object with an array as its last member.
    func document<Element: Sendable>(
        _ head: some Encodable, _ name: String, _ elements: [Element], _ json: @Sendable (Element) -> [UInt8]
    ) {
        // Without the line end and the closing bracket.
        output.write(String(decoding: JSONLayout.text(Self.encode(head), indent: 0).dropLast(2), as: UTF8.self))
        output.write(",\n  \"\(name)\": ")
        write(elements, indent: 2, json)
        output.write("\n}\n")
    }

    /// Elements are formatted on all processors and written in pieces, so that the text of 100,000 tasks is never in
    /// memory at once.
    private func write<Element: Sendable>(
        _ elements: [Element], indent: Int?, _ json: @Sendable (Element) -> [UInt8]
    ) {
        guard !elements.isEmpty else { return output.write("[]") }
        let inner = indent.map { $0 + 2 }
        func lineStart(_ column: Int?) -> String { column.map { "\n" + String(repeating: " ", count: $0) } ?? "" }
        let separator = "," + lineStart(inner)
        let blocks = stride(from: 0, to: elements.count, by: 256).map { elements[$0..<min($0 + 256, elements.count)] }
        var isFirst = true
        for group in stride(from: 0, to: blocks.count, by: 16).map({ blocks[$0..<min($0 + 16, blocks.count)] }) {
            let texts = Parallel.map(Array(group)) { block in
                Array(block.map { JSONLayout.text(json($0), indent: inner) }.joined(separator: separator.utf8))
            }
            for text in texts {
                output.write(isFirst ? "[" + lineStart(inner) : separator)
                output.write(String(decoding: text, as: UTF8.self))
                isFirst = false
            }
        }
        output.write(lineStart(indent) + "]")
    }
}

/// A member that is null while unknown and never left out, so that scripts find every key in every document.
@propertyWrapper
struct OrNull<Value: Encodable & Sendable>: Encodable, Sendable {
    var wrappedValue: Value?

    init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
}
