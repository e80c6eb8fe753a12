/// Reads the objects of a JSON document in order, with the position of each.
struct JSONList {
    /// An element of the list.
    struct Element {
        var object: JSONReader.Object
        var line: Int
        var column: Int
    }

    private let form: Manifest.Form
    private var reader: JSONReader
    private var places = TextPlaces()

    init(_ form: Manifest.Form, _ bytes: [UInt8]) {
        self.form = form
        reader = JSONReader(bytes)
    }

    /// True if the next value is an object rather than an array.
    var isAtObject: Bool {
        mutating get { reader.peek() == UInt8(ascii: "{") }
    }

    /// Reads the beginning of an array.
    ///
    /// - Returns: false for an empty array, which is read completely.
    mutating func beginArray() throws(ManifestError) -> Bool {
        try expect(UInt8(ascii: "["))
        return !reader.skip(UInt8(ascii: "]"))
    }

    /// Reads the next element, an object.
    mutating func element() throws(ManifestError) -> Element {
        let start = reader.index
        guard let object = try value().object else {
            throw fault(JSONReader.Fault(reason: "an object is expected here", offset: start))
        }
        let place = places.place(of: object.start, in: reader.bytes)
        return Element(object: object, line: place.line, column: place.column)
    }

    /// Reads the separator after an element or a member: true for a comma, false for the end of the array or object.
    mutating func continues(until end: Unicode.Scalar) throws(ManifestError) -> Bool {
        if reader.skip(UInt8(ascii: ",")) { return true }
        try expect(UInt8(ascii: end))
        return false
    }

    /// Reads the beginning of an object.
    ///
    /// - Returns: false for an empty object, which is read completely.
    mutating func beginObject() throws(ManifestError) -> Bool {
        try expect(UInt8(ascii: "{"))
        return !reader.skip(UInt8(ascii: "}"))
    }

    mutating func memberName() throws(ManifestError) -> String {
        do throws(JSONReader.Fault) { return try reader.memberName() } catch { throw fault(error) }
    }

    mutating func value() throws(ManifestError) -> JSONReader.Value {
        do throws(JSONReader.Fault) { return try reader.value() } catch { throw fault(error) }
    }

    mutating func expectEnd() throws(ManifestError) {
        do throws(JSONReader.Fault) { try reader.expectEnd() } catch { throw fault(error) }
    }

    private mutating func expect(_ byte: UInt8) throws(ManifestError) {
        do throws(JSONReader.Fault) { try reader.expect(byte) } catch { throw fault(error) }
    }

    private mutating func fault(_ error: JSONReader.Fault) -> ManifestError {
        let place = places.place(of: error.offset, in: reader.bytes)
        return ManifestError(form: form, line: place.line, column: place.column, error.reason)
    }
}
