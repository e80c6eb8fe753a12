import FKMiddleware

/// Writes an object on one line, member by member. Nil members are omitted.
package struct JSONLine {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    package var closed: [UInt8] { bytes + [UInt8(ascii: "}")] }
    /// The complete object with a line end.
    package var ended: [UInt8] { closed + [0x0a] }

    mutating func add(_ name: String, _ value: String?) {
        guard let value else { return }
        begin(name)
        JSON.write(value, into: &bytes)
    }

    mutating func add(_ name: String, _ value: Int64?) {
        guard let value else { return }
        begin(name)
        bytes += String(value).utf8
    }

    mutating func add(_ name: String, object: JSONLine) {
        begin(name)
        bytes += object.closed
    }

    /// Adds each digest under the name of its algorithm.
    package mutating func add(_ digests: [Checksum]) {
        for digest in digests { add(digest.algorithm.rawValue, digest.hex) }
    }

    /// Adds each mirror as a text, or as an object if it has more than a URL.
    package mutating func add(mirrors: ArraySlice<Manifest.Source>) {
        guard !mirrors.isEmpty else { return }
        begin("mirrors")
        list(mirrors) { source, bytes in
            guard source.priority != Manifest.Source.lowestPriority || source.location != nil else {
                return JSON.write(source.url, into: &bytes)
            }
            var object = JSONLine()
            object.add("url", source.url)
            object.add("priority", Int64(source.priority))
            object.add("location", source.location)
            bytes += object.closed
        }
    }

    mutating func add(_ pieces: [Manifest.Pieces]) {
        guard !pieces.isEmpty else { return }
        begin("pieces")
        list(pieces[...]) { set, bytes in
            var object = JSONLine()
            object.add("length", set.length)
            object.add("type", set.algorithm.rawValue)
            object.add("hashes", Digester.hex(set.bytes))
            bytes += object.closed
        }
    }

    /// The array of pieces alone.
    package static func pieces(_ pieces: Manifest.Pieces) -> [UInt8] {
        var line = JSONLine()
        line.add([pieces])
        return Array(line.closed.dropFirst(#"{"pieces":"#.utf8.count).dropLast())
    }

    private mutating func begin(_ name: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        JSON.write(name, into: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func list<Element>(_ elements: ArraySlice<Element>, _ write: (Element, inout [UInt8]) -> Void) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(element, &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }
}
