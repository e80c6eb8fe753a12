/// Walks through the elements of a small XML document in memory.
enum XMLElements {
    /// The maximum length of an element's text in bytes. A key has at most 1,024, a continuation token less than 4,096.
    static let maxText = 64 << 10

    /// An element at its end.
    struct Element {
        /// The names of the elements around it and its own, without the root.
        var path: [String]
        /// The text directly in it.
        var text: String
        var attributes: [(name: String, value: String)]
    }

    /// - Parameters:
    ///   - root: false refuses the document by the name of its root.
    ///   - take: receives every element below the root at its end, inner ones first.
    /// - Throws: `XMLReader.Fault`, and the errors of `take`.
    static func read(_ bytes: [UInt8], root: (String) -> Bool, _ take: (Element) throws -> Void) throws {
        var reader = XMLReader(bytes)
        var open: [Element] = []
        var hasRoot = false
        while true {
            switch try reader.next() {
            case .start(let element):
                guard hasRoot else {
                    guard root(element.name) else {
                        throw XMLReader.Fault(
                            reason: "<\(element.name)> is not the root of such a document", offset: element.start)
                    }
                    hasRoot = true
                    continue
                }
                open.append(
                    Element(
                        path: (open.last?.path ?? []) + [element.name], text: "", attributes: element.attributes))
            case .text(let text):
                guard let last = open.indices.last else { continue }
                open[last].text += text
                guard open[last].text.utf8.count <= maxText else {
                    throw XMLReader.Fault(
                        reason: "a text of <\(open[last].path.last ?? "")> is longer than \(maxText >> 10) KiB",
                        offset: reader.index)
                }
            case .end: if let element = open.popLast() { try take(element) }
            case .done, .more: return
            }
        }
    }
}
