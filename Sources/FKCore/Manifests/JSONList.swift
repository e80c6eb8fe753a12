/// Reads the objects of a JSON document in order, with the position of each: the elements of an array, which may be a
/// member of an object.
///
/// The document comes in portions. A value whose end has not come is read again when there are twice as many bytes, so
/// the work stays proportional to the document, and at most the bytes of one value are held.
struct JSONList: Sendable {
    enum Event {
        /// An element of the list.
        case element(Element)
        /// Another member of the object around the list.
        case member(name: String, JSONReader.Value)
        /// A document that is an object, where only an array is read.
        case object(JSONReader.Value)
        /// The next event needs more bytes.
        case more
        /// The end of the document.
        case done
    }

    /// An element of the list.
    struct Element {
        var object: JSONReader.Object
        var line: Int
        var column: Int
    }

    /// What comes next.
    private enum State: Sendable {
        case document
        case member
        case afterMember
        case element
        case afterElement
        case end
    }

    private let form: Manifest.Form
    /// The names of members that may be the list, if the document is an object; empty if it has to be an array.
    private let listNames: [String]
    /// The name of the list of the last element.
    private(set) var listName = ""
    private let maxEntry: Int
    private var reader = JSONReader([])
    private var places = TextPlaces()
    private var state = State.document
    private var isInObject = false
    private var hasList = false
    /// True once the last byte is in memory.
    private var isWhole = false
    /// The number of unread bytes with which the next event is read.
    private var wanted = JSONReader.lookahead

    init(_ form: Manifest.Form, listNames: [String], maxEntry: Int = Manifest.Reading.maxDocumentEntry) {
        self.form = form
        self.listNames = listNames
        self.maxEntry = maxEntry
    }

    /// The number of bytes in memory.
    var heldBytes: Int { reader.bytes.count }

    /// Adds a portion.
    mutating func take(_ bytes: [UInt8]) {
        // The last byte stays: it tells whether a line ends there.
        let count = max(0, reader.index - 1)
        places.drop(count, of: reader.bytes)
        reader.slide(by: count, adding: bytes)
    }

    /// Ends the document.
    mutating func finish() { isWhole = true }

    /// Reads the next event.
    mutating func next() throws(ManifestError) -> Event {
        while isWhole || reader.unread >= wanted {
            if state == .end, !isWhole, reader.peek() == nil { return .more }
            let before = (index: reader.index, state: state, isInObject: isInObject, hasList: hasList)
            var event: Event?
            var wrong: JSONReader.Fault?
            do throws(JSONReader.Fault) { event = try step() } catch { wrong = error }
            guard isWhole || reader.unread >= JSONReader.lookahead else {
                reader.goBack(to: before.index)
                (state, isInObject, hasList) = (before.state, before.isInObject, before.hasList)
                wanted = reader.unread * 2
                continue
            }
            wanted = JSONReader.lookahead
            if let wrong { throw fault(wrong) }
            if state == .end, isInObject, !hasList {
                let names = listNames.map { "'\($0)'" }.joined(separator: ", ")
                throw ManifestError(form: form, "the object has no array \(names): it is no list of downloads")
            }
            switch event {
            case .element(var element):
                (element.line, element.column) = places.place(of: element.object.start, in: reader.bytes)
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
        case .document: return try begin()
        case .member: return try member()
        case .afterMember:
            try end(of: UInt8(ascii: "}"), next: .member, after: .end)
            return nil
        case .element:
            let start = reader.index
            guard let object = try reader.value().object else {
                throw JSONReader.Fault(reason: "an object is expected here", offset: start)
            }
            state = .afterElement
            return .element(Element(object: object, line: 0, column: 0))
        case .afterElement:
            try end(of: UInt8(ascii: "]"), next: .element, after: isInObject ? .afterMember : .end)
            return nil
        case .end:
            try reader.expectEnd()
            return .done
        }
    }

    private mutating func begin() throws(JSONReader.Fault) -> Event? {
        reader.skipByteOrderMark()
        guard reader.peek() == UInt8(ascii: "{") else {
            try beginList(after: .end)
            return nil
        }
        guard !listNames.isEmpty else { return .object(try reader.value()) }
        try reader.expect(UInt8(ascii: "{"))
        isInObject = true
        state = reader.skip(UInt8(ascii: "}")) ? .end : .member
        return nil
    }

    private mutating func member() throws(JSONReader.Fault) -> Event? {
        let name = try reader.memberName()
        if listNames.contains(name), reader.peek() == UInt8(ascii: "[") {
            hasList = true
            listName = name
            try beginList(after: .afterMember)
            return nil
        }
        let value = try reader.value()
        state = .afterMember
        return .member(name: name, value)
    }

    private mutating func beginList(after: State) throws(JSONReader.Fault) {
        try reader.expect(UInt8(ascii: "["))
        state = reader.skip(UInt8(ascii: "]")) ? after : .element
    }

    /// Reads the separator after an element or a member.
    private mutating func end(of byte: UInt8, next: State, after: State) throws(JSONReader.Fault) {
        if reader.skip(UInt8(ascii: ",")) { return state = next }
        try reader.expect(byte)
        state = after
    }

    private mutating func fault(_ error: JSONReader.Fault) -> ManifestError {
        let place = places.place(of: error.offset, in: reader.bytes)
        return ManifestError(form: form, line: place.line, column: place.column, error.reason)
    }
}
