/// Reads the objects of a JSON document in order, with the position of each: the elements of an array, and of the arrays that are
/// members of an object, also below other objects.
///
/// The document comes in portions. A value whose end has not come is read again when there are twice as many bytes, so
/// the work stays proportional to the document, and at most the bytes of one value are held.
struct JSONList: Sendable {
    enum Event {
        case element(Element)
        /// Another member of the object around the lists, unless it is an array or an object.
        case member(name: String, JSONReader.Value)
        /// The name of an array or object that is a member of the outermost object.
        case container(name: String, isArray: Bool)
        /// The next event needs more bytes.
        case more
        case done
    }

    struct Element {
        var object: JSONReader.Object
        /// The name of the list; empty for a document that is an array.
        var list: String
        var line: Int
        var column: Int
        /// The number of its array in the document.
        var array = 0
    }

    private enum State: Sendable {
        case document
        case member
        case afterMember
        case element
        case afterElement
        case end
    }

    /// An open array or object.
    private enum Container: Sendable {
        case object
        case array(name: String)
    }

    /// The depth of objects in which lists are looked for.
    private static let maxDepth = 8
    /// Members that are one object where others have an array of them.
    private static let singles: Set<String> = ["distribution", "assets"]
    /// Members with other things than files.
    private static let others: Set<String> = [
        "links", "authors", "creators", "contributors", "license", "licenses", "keywords", "tags", "references",
        "related_identifiers",
        "relatedIdentifiers", "citations", "publisher", "owner", "author", "organization", "releases",
        "vulnerabilities", "dependencies",
        "funding", "funders", "communities", "stats", "recordSet",
    ]

    /// Members of a document that may be arrays of addresses.
    private static let addressLists: Set<String> = ["urls", "files", "downloads"]

    private let form: Manifest.Form
    /// True if a document that is an object may have lists.
    private let takesObjects: Bool
    private let maxEntry: Int
    private var reader = JSONReader([])
    private var places = TextPlaces()
    private var state = State.document
    private var nesting: [Container] = []
    /// The number of arrays so far.
    private var arrays = 0
    /// True if an array with objects was found.
    private(set) var hasList = false
    private(set) var isArray = false
    /// True once the last byte is in memory.
    private var isWhole = false
    /// The number of unread bytes with which the next event is read.
    private var wanted = JSONReader.lookahead

    init(_ form: Manifest.Form, takesObjects: Bool = true, maxEntry: Int = Manifest.Reading.maxDocumentEntry) {
        self.form = form
        self.takesObjects = takesObjects
        self.maxEntry = maxEntry
    }

    var heldBytes: Int { reader.bytes.count }

    mutating func append(_ bytes: [UInt8]) {
        // The last byte stays: it tells whether a line ends there.
        let count = max(0, reader.index - 1)
        places.drop(count, of: reader.bytes)
        reader.slide(by: count, adding: bytes)
    }

    mutating func finish() { isWhole = true }

    mutating func next() throws(ManifestError) -> Event {
        while isWhole || reader.unread >= wanted {
            if state == .end, !isWhole, reader.peek() == nil { return .more }
            let before = (index: reader.index, state: state, nesting: nesting, hasList: hasList, arrays: arrays)
            var event: Event?
            var wrong: JSONReader.Fault?
            do throws(JSONReader.Fault) { event = try step() } catch { wrong = error }
            guard isWhole || reader.unread >= JSONReader.lookahead else {
                reader.goBack(to: before.index)
                (state, nesting, hasList, arrays) = (before.state, before.nesting, before.hasList, before.arrays)
                wanted = reader.unread * 2
                continue
            }
            wanted = JSONReader.lookahead
            if let wrong { throw fault(wrong) }
            switch event {
            case .element(var element):
                (element.line, element.column) = places.place(of: element.object.start, in: reader.bytes)
                element.array = arrays
                return .element(element)
            case let event?: return event
            case nil: continue
            }
        }
        guard reader.unread <= maxEntry else {
            throw fault(JSONReader.Fault(reason: Manifest.Reading.longEntry(maxEntry), offset: reader.index))
        }
        return .more
    }

    /// Reads the next part of the document; nil for a part without a meaning.
    private mutating func step() throws(JSONReader.Fault) -> Event? {
        switch state {
        case .document:
            reader.skipByteOrderMark()
            if takesObjects, reader.skip(UInt8(ascii: "{")) {
                nesting = [.object]
                state = reader.skip(UInt8(ascii: "}")) ? .end : .member
            } else if !takesObjects, reader.peek() == UInt8(ascii: "{") {
                // An answer in place of the list.
                guard let object = try reader.value().object else { return nil }
                state = .end
                return .element(Element(object: object, list: "{}", line: 0, column: 0))
            } else {
                try reader.expect(UInt8(ascii: "["))
                nesting = [.array(name: "")]
                isArray = true
                state = reader.skip(UInt8(ascii: "]")) ? .end : .element
                hasList = true
            }
            return nil
        case .member: return try member()
        case .element: return try element()
        case .afterMember:
            try end(of: UInt8(ascii: "}"), next: .member)
            return nil
        case .afterElement:
            try end(of: UInt8(ascii: "]"), next: .element)
            return nil
        case .end:
            try reader.expectEnd()
            return .done
        }
    }

    private mutating func member() throws(JSONReader.Fault) -> Event? {
        let name = try reader.memberName()
        let isOuter = nesting.count == 1
        let isArray = reader.peek() == UInt8(ascii: "[")
        state = .afterMember
        let isKept = nesting.count < Self.maxDepth && !Self.others.contains(name)
        switch reader.peek() {
        case UInt8(ascii: "[") where isKept:
            try reader.expect(UInt8(ascii: "["))
            if reader.skip(UInt8(ascii: "]")) { break }
            nesting.append(.array(name: name))
            arrays += 1
            state = .element
        case UInt8(ascii: "{") where isKept && Self.singles.contains(name):
            guard let object = try reader.value().object else { return nil }
            hasList = true
            return .element(Element(object: object, list: name, line: 0, column: 0))
        case UInt8(ascii: "{") where isKept:
            try reader.expect(UInt8(ascii: "{"))
            if reader.skip(UInt8(ascii: "}")) { break }
            nesting.append(.object)
            state = .member
        default:
            guard let value = try reader.scalar() else { break }
            return isOuter ? .member(name: name, value) : nil
        }
        return isOuter ? .container(name: name, isArray: isArray) : nil
    }

    private mutating func element() throws(JSONReader.Fault) -> Event? {
        guard case .array(let name) = nesting.last else { return nil }
        let start = reader.index
        state = .afterElement
        guard reader.peek() == UInt8(ascii: "{") else {
            if reader.peek() == UInt8(ascii: "\""), let address = try address(in: name) {
                hasList = true
                let member = JSONReader.Member(name: "url", value: .string(address))
                let object = JSONReader.Object(members: [member], start: start)
                return .element(Element(object: object, list: name, line: 0, column: 0))
            }
            if name.isEmpty {
                _ = try reader.value()
                throw JSONReader.Fault(reason: "an object is expected here", offset: start)
            }
            _ = try reader.scalar()
            return nil
        }
        guard let object = try reader.value().object else { return nil }
        hasList = true
        return .element(Element(object: object, list: name, line: 0, column: 0))
    }

    /// Reads a text that is an element of a list; nil for one that is no address, which stays unread in a document that is an array.
    private mutating func address(in list: String) throws(JSONReader.Fault) -> String? {
        guard takesObjects, nesting.count <= 2, list.isEmpty || Self.addressLists.contains(list) else { return nil }
        let start = reader.index
        if let text = try reader.value().string, text.contains("://") { return text }
        reader.goBack(to: start)
        return nil
    }

    /// Reads the separator after an element or a member.
    private mutating func end(of byte: UInt8, next: State) throws(JSONReader.Fault) {
        if reader.skip(UInt8(ascii: ",")) { return state = next }
        try reader.expect(byte)
        nesting.removeLast()
        switch nesting.last {
        case .object: state = .afterMember
        case .array: state = .afterElement
        case nil: state = .end
        }
    }

    private mutating func fault(_ error: JSONReader.Fault) -> ManifestError {
        let place = places.place(of: error.offset, in: reader.bytes)
        return ManifestError(form: form, line: place.line, column: place.column, error.reason)
    }
}
