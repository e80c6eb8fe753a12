/// Reads XML 1.0, one event at a time: strictly, and only the parts that data formats use.
///
/// The document is in memory or comes in portions. An event whose end has not come is read again when there are twice as
/// many bytes, so the work stays proportional to the document, and at most the bytes of one event are held.
///
/// Document types are an error, so there are no entities to expand and no external ones to load. It reads only UTF-8,
/// resolves namespaces, and reports positions. A document that ends early is an error.
///
/// Foundation's parser is not used, because it is libxml2: the program would load it and ICU's data at every start.
struct XMLReader: Sendable {
    enum Event {
        case start(Element)
        case end
        /// A part of a text, which may consist of several events.
        case text(String)
        case done
        /// The next event needs more bytes. Only for a document in portions.
        case more
    }

    struct Element {
        /// The name without its prefix.
        var name: String
        /// The URL of its namespace; empty for none.
        var namespace: String
        /// The attributes without a prefix, and those with the prefix `xml:`.
        var attributes: [(name: String, value: String)]
        /// The offset of its `<`.
        var start: Int

        subscript(name: String) -> String? { attributes.first { $0.name == name }?.value }
    }

    typealias Fault = XMLCursor.Fault

    static let maxDepth = 100
    private static let xmlNamespace = "http://www.w3.org/XML/1998/namespace"

    private var cursor: XMLCursor
    /// The open elements: where their names begin in `names`, and the number of prefixes before them.
    private var open: [(name: Int, scopes: Int)] = []
    /// The names of the open elements, one after the other.
    private var names: [UInt8] = []
    /// The prefixes in scope, the latest last. The empty prefix is the default namespace.
    private var scopes: [(prefix: String, namespace: String)] = []
    /// True after an empty element: its end is the next event.
    private var endsAtOnce = false
    private var hasBegun = false
    private var hasRoot = false
    /// True once the last byte is in memory.
    private var isWhole: Bool
    /// The number of unread bytes with which the next event is read.
    private var wanted = XMLCursor.lookahead

    /// Creates a reader of a whole document.
    init(_ bytes: [UInt8]) {
        cursor = XMLCursor(bytes)
        isWhole = true
    }

    /// Creates a reader of a document in portions.
    init() {
        cursor = XMLCursor([])
        isWhole = false
    }

    mutating func slide(by count: Int, adding more: [UInt8]) { cursor.slide(by: count, adding: more) }
    mutating func finish() { isWhole = true }

    /// The bytes in memory. Offsets are theirs.
    var bytes: [UInt8] { cursor.bytes }
    /// The offset behind the last event.
    var index: Int { cursor.index }
    /// The number of bytes read so far, with those that have left the memory.
    var position: Int { cursor.dropped + cursor.index }
    var unread: Int { cursor.unread }

    mutating func next() throws(Fault) -> Event {
        if endsAtOnce {
            endsAtOnce = false
            close()
            return .end
        }
        while true {
            guard isWhole || cursor.unread >= wanted else { return .more }
            let before = (
                index: cursor.index, hasBegun: hasBegun, hasRoot: hasRoot, open: open.count, names: names.count,
                scopes: scopes.count
            )
            var isCertain = true
            do throws(Fault) {
                let event = try step()
                // A text at the end may go on.
                if case .text = event, cursor.isAtEnd, !isWhole { isCertain = false }
                if isCertain {
                    wanted = 1
                    if let event { return event }
                    continue
                }
            } catch {
                if isWhole || cursor.unread >= XMLCursor.lookahead { throw error }
            }
            cursor.index = before.index
            (hasBegun, hasRoot, endsAtOnce) = (before.hasBegun, before.hasRoot, false)
            open.removeLast(open.count - before.open)
            names.removeLast(names.count - before.names)
            scopes.removeLast(scopes.count - before.scopes)
            wanted = cursor.unread * 2
        }
    }

    /// Reads the next event; nil for a part without a meaning, such as a comment.
    private mutating func step() throws(Fault) -> Event? {
        if !hasBegun {
            hasBegun = true
            try cursor.readDeclaration()
        }
        guard !cursor.isAtEnd else { return try end() }
        guard cursor.byte() == UInt8(ascii: "<") else {
            return try cursor.readText(isInside: !open.isEmpty).map { .text($0) }
        }
        switch cursor.byte(1) {
        case UInt8(ascii: "/"):
            try readEnd()
            return .end
        case UInt8(ascii: "?"):
            try cursor.skipInstruction()
            return nil
        case UInt8(ascii: "!"): return try cursor.readSpecial(isInside: !open.isEmpty).map { .text($0) }
        default: return .start(try readStart())
        }
    }

    private func end() throws(Fault) -> Event? {
        guard isWhole else { return nil }
        if let last = open.last {
            let name = String(decoding: names[last.name...], as: UTF8.self)
            throw cursor.fault("the document ends inside of <\(name)>: it is not whole")
        }
        guard hasRoot else { throw cursor.fault("the document has no element") }
        return .done
    }

    // MARK: Tags

    private mutating func readStart() throws(Fault) -> Element {
        let start = cursor.index
        guard !open.isEmpty || !hasRoot else { throw cursor.fault("the document has a second root element") }
        guard open.count < Self.maxDepth else {
            throw cursor.fault("more than \(Self.maxDepth) elements in each other")
        }
        hasRoot = true
        cursor.index += 1
        let name = try cursor.readName()
        var attributes: [(name: ArraySlice<UInt8>, value: String, start: Int)] = []
        while true {
            let hasBlank = cursor.skipBlanks()
            guard !cursor.isAtEnd else { throw cursor.ended("a tag") }
            if cursor.byte() == UInt8(ascii: ">") {
                cursor.index += 1
                break
            }
            if cursor.byte() == UInt8(ascii: "/") {
                cursor.index += 1
                try cursor.expect(">")
                endsAtOnce = true
                break
            }
            guard hasBlank else { throw cursor.fault("a blank is missing between attributes") }
            let attribute = try cursor.readAttribute()
            // Checking for duplicates is quadratic in the number of attributes.
            guard attributes.count < 200 else {
                throw cursor.fault("the element has more than 200 attributes", at: start)
            }
            guard !attributes.contains(where: { $0.name == attribute.name }) else {
                let name = String(decoding: attribute.name, as: UTF8.self)
                throw cursor.fault("the attribute \(name) is given twice", at: attribute.start)
            }
            attributes.append(attribute)
        }
        return try openElement(name, attributes, start)
    }

    private mutating func openElement(
        _ name: ArraySlice<UInt8>, _ attributes: [(name: ArraySlice<UInt8>, value: String, start: Int)], _ start: Int
    ) throws(Fault) -> Element {
        open.append((names.count, scopes.count))
        names += name
        var plain: [(name: String, value: String)] = []
        for attribute in attributes {
            let (prefix, local) = try split(attribute.name, at: attribute.start)
            if prefix == "xmlns" {
                guard !attribute.value.isEmpty else {
                    throw cursor.fault("a prefix has no namespace", at: attribute.start)
                }
                scopes.append((local, attribute.value))
            } else if prefix.isEmpty, local == "xmlns" {
                scopes.append(("", attribute.value))
            }
        }
        for attribute in attributes {
            let (prefix, local) = try split(attribute.name, at: attribute.start)
            if prefix == "xmlns" || (prefix.isEmpty && local == "xmlns") { continue }
            if prefix.isEmpty {
                plain.append((local, attribute.value))
            } else if try namespace(prefix, at: attribute.start) == Self.xmlNamespace {
                plain.append(("xml:\(local)", attribute.value))
            }
        }
        let (prefix, local) = try split(name, at: start)
        return Element(
            name: local, namespace: try namespace(prefix, at: start), attributes: plain, start: start)
    }

    private mutating func readEnd() throws(Fault) {
        let start = cursor.index
        cursor.index += 2
        let name = try cursor.readName()
        cursor.skipBlanks()
        try cursor.expect(">")
        guard let last = open.last else { throw cursor.fault("an end tag without a start tag", at: start) }
        guard names[last.name...] == name else {
            let wanted = String(decoding: names[last.name...], as: UTF8.self)
            let found = String(decoding: name, as: UTF8.self)
            throw cursor.fault("</\(found)> stands where </\(wanted)> should be", at: start)
        }
        close()
    }

    private mutating func close() {
        guard let last = open.popLast() else { return }
        scopes.removeLast(scopes.count - last.scopes)
        names.removeLast(names.count - last.name)
    }

    // MARK: Namespaces

    private func split(_ name: ArraySlice<UInt8>, at offset: Int) throws(Fault) -> (prefix: String, local: String) {
        guard let colon = name.firstIndex(of: UInt8(ascii: ":")) else { return ("", try cursor.text(name, at: offset)) }
        let (prefix, local) = (name[..<colon], name[(colon + 1)...])
        guard !prefix.isEmpty, !local.isEmpty, !local.contains(UInt8(ascii: ":")) else {
            throw cursor.fault("a name with a colon is a prefix and a name", at: offset)
        }
        return (try cursor.text(prefix, at: offset), try cursor.text(local, at: offset))
    }

    private func namespace(_ prefix: String, at offset: Int) throws(Fault) -> String {
        if prefix == "xml" { return Self.xmlNamespace }
        if let scope = scopes.last(where: { $0.prefix == prefix }) { return scope.namespace }
        guard prefix.isEmpty else { throw cursor.fault("the prefix \(prefix) has no namespace", at: offset) }
        return ""
    }
}
