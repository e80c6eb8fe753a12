import FKMiddleware

/// Reads Metalink 4 (RFC 5854) and Metalink 3 (metalinker.org).
///
/// An element counts only where its format allows it. A `hash` outside of a file, its `verification` or its `pieces`
/// belongs to something else. Elements of other namespaces are skipped with their content.
struct MetalinkParser: DocumentFormat {
    static let namespace4 = "urn:ietf:params:xml:ns:metalink"
    static let namespace3 = "http://www.metalinker.org/"
    /// The namespaces of version 3 and 4 as some programs write them.
    private static let namespaces3: Set<String> = [
        namespace3, "https://www.metalinker.org/", "http://www.metalinker.org", "http://metalinker.org/",
    ]

    private var reader = XMLReader()
    private var places = TextPlaces()
    private var collector: ManifestCollector
    private let base: BaseURL?
    private var namespace = ""
    /// The open elements, the root first, each with its text so far.
    private var open: [(node: Node, text: String)] = []
    private var file: MetalinkFile?
    private let maxEntry: Int

    /// The elements with a meaning, by kind and position.
    private enum Node: Sendable {
        case root
        /// Groups without further meaning: `files` and `resources` of version 3.
        case files
        case resources
        case verification
        case file
        case size
        case hash
        case pieces
        case pieceHash
        case url
        case metaurl
        case signature
        /// Information about a file, by its name.
        case fact(String)
        /// Information about the list, by its name.
        case listFact(String)
        case other
    }

    /// The maximum length of an element's text in bytes, such as a signature.
    private static let maxText = 1 << 20

    /// The form of a document by its root element; nil if it is not a Metalink.
    static func form(of head: [UInt8]) -> Manifest.Form? {
        var reader = XMLReader(head)
        do {
            while true {
                switch try reader.next() {
                case .start(let root): return form(of: root)
                case .done: return nil
                case .end, .text, .more: continue
                }
            }
        } catch {
            // Faults are reported when the document is read.
            let text = String(decoding: head, as: UTF8.self)
            return text.contains("<metalink") || text.contains("DOCTYPE metalink") ? .metalink4 : nil
        }
    }

    private static func form(of root: XMLReader.Element) -> Manifest.Form? {
        guard root.name == "metalink" else { return nil }
        switch root.namespace {
        case namespace4: return .metalink4
        case _ where namespaces3.contains(root.namespace): return .metalink3
        // Version 4 has no attribute `version`, and files below its root.
        case "": return root["version"]?.hasPrefix("3") == true ? .metalink3 : .metalink4
        default: return nil
        }
    }

    /// What is wrong with a Metalink of another namespace; nil for another document.
    static func fault(in head: [UInt8]) -> String? {
        var reader = XMLReader(head)
        while let event = try? reader.next() {
            switch event {
            case .start(let root):
                guard root.name == "metalink" else { return nil }
                return
                    "the Metalink has the namespace '\(root.namespace)': version 4 has \(namespace4), and version 3 \(namespace3)"
            case .done, .more: return nil
            case .end, .text: continue
            }
        }
        return nil
    }

    init(_ reading: Manifest.Reading, maxEntry: Int = Manifest.Reading.maxDocumentEntry) {
        self.maxEntry = maxEntry
        collector = ManifestCollector(.metalink4, reading)
        base = reading.baseURL.map(BaseURL.init)
    }

    mutating func parse(_ bytes: [UInt8]) throws(ManifestError) {
        // The last byte stays: it tells whether a line ends there.
        let count = max(0, reader.index - 1)
        places.drop(count, of: reader.bytes)
        reader.slide(by: count, adding: bytes)
        try readEvents()
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        reader.finish()
        try readEvents()
        return collector.manifest
    }

    var heldBytes: Int { reader.bytes.count }

    private mutating func readEvents() throws(ManifestError) {
        while true {
            let event: XMLReader.Event
            do throws(XMLReader.Fault) { event = try reader.next() } catch { throw fault(error.reason, error.offset) }
            switch event {
            case .start(let element): try start(element)
            case .text(let text): try parseText(text)
            case .end: try end()
            case .more:
                guard reader.unread <= maxEntry else { throw tooLong(place(reader.index)) }
                return
            case .done: return
            }
            if let file, reader.position - file.position > maxEntry { throw tooLong(file.start) }
        }
    }

    // MARK: Events

    private mutating func start(_ element: XMLReader.Element) throws(ManifestError) {
        guard let parent = open.last?.node else { return try startRoot(element) }
        let node = element.namespace == namespace ? child(element.name, of: parent) : .other
        open.append((node, ""))
        let here = place(element.start)
        switch node {
        case .file:
            file = MetalinkFile(element["name"] ?? "", at: here, position: reader.position)
        case .hash: file?.begin(hash: element["type"])
        case .pieces:
            if let kind = file?.begin(pieces: element["type"], length: element["length"], at: here) {
                collector.passOver(kind)
            }
        case .pieceHash: file?.begin(pieceHash: element["piece"], at: here)
        case .url: file?.begin(url: element, at: here, isVersion3: collector.manifest.form == .metalink3)
        case .metaurl: collector.passOver(element["mediatype"]?.lowercased() ?? "metaurl")
        case .signature: file?.begin(signature: element["mediatype"] ?? element["type"])
        default: break
        }
    }

    private mutating func startRoot(_ element: XMLReader.Element) throws(ManifestError) {
        guard let form = Self.form(of: element) else {
            throw fault("the root element <\(element.name)> is not that of a Metalink of version 3 or 4", element.start)
        }
        collector.manifest.form = form
        namespace = element.namespace
        open.append((.root, ""))
        guard form == .metalink3 else { return }
        collector.manifest.facts.generator = element["generator"]
        collector.manifest.facts.origin = element["origin"]
        collector.manifest.facts.published = element["pubdate"]
    }

    private func child(_ name: String, of parent: Node) -> Node {
        let is3 = collector.manifest.form == .metalink3
        switch (parent, name) {
        case (.root, "files") where is3: return .files
        case (.root, "file") where !is3, (.files, "file") where is3: return .file
        case (.root, "generator"), (.root, "published"), (.root, "origin"): return is3 ? .other : .listFact(name)
        case (.file, "size"): return .size
        case (.file, "verification") where is3: return .verification
        case (.file, "resources") where is3: return .resources
        case (.file, "hash") where !is3, (.verification, "hash"): return .hash
        case (.file, "pieces") where !is3, (.verification, "pieces"): return .pieces
        case (.pieces, "hash"): return .pieceHash
        case (.file, "signature") where !is3, (.verification, "signature"): return .signature
        case (.file, "url") where !is3, (.resources, "url"): return .url
        case (.file, "metaurl") where !is3, (.resources, "metaurl"): return .metaurl
        case (.file, "identity"), (.file, "version"), (.file, "language"), (.file, "os"), (.file, "description"),
            (.file, "copyright"):
            return .fact(name)
        default: return .other
        }
    }

    private mutating func parseText(_ text: String) throws(ManifestError) {
        guard let last = open.last else { return }
        switch last.node {
        case .size, .hash, .pieceHash, .url, .signature, .fact, .listFact:
            guard last.text.utf8.count + text.utf8.count <= Self.maxText else {
                throw fault("the text of an element is longer than \(Self.maxText >> 20) MiB", reader.index)
            }
            open[open.count - 1].text += text
        default: break
        }
    }

    private mutating func end() throws(ManifestError) {
        guard let (node, raw) = open.popLast() else { return }
        let text = raw.trimmingWhitespace
        let here = place(reader.index)
        switch node {
        case .file: try endFile()
        case .size: file?.end(size: text, at: here)
        case .hash: if let kind = file?.end(hash: text, at: here) { collector.passOver(kind) }
        case .pieceHash: file?.end(pieceHash: text, at: here)
        case .pieces: file?.endPieces(at: here)
        case .url: try endURL(text)
        case .signature: file?.end(signature: raw)
        case .fact(let name): file?.end(fact: name, text)
        case .listFact("generator"): collector.manifest.facts.generator = text
        case .listFact("published"): collector.manifest.facts.published = text
        case .listFact: collector.manifest.facts.origin = text
        default: break
        }
    }

    private mutating func endURL(_ text: String) throws(ManifestError) {
        guard let start = file?.urlStart else { return }
        switch file?.end(url: text, base) {
        case .passedOver(let kind): collector.passOver(kind)
        case .refused(let reason):
            let name = file?.entry.name ?? ""
            try collector.leaveOutPart(fault("'\(name)': \(reason)", at: start))
        case .taken, nil: break
        }
    }

    private mutating func endFile() throws(ManifestError) {
        guard var done = file else { return }
        file = nil
        done.finish()
        guard let wrong = done.fault else {
            try collector.add(done.entry, column: done.start.column)
            return
        }
        try collector.leaveOut(fault("'\(done.shownName)': \(wrong.reason)", at: wrong.place))
    }

    private mutating func fault(_ reason: String, _ offset: Int) -> ManifestError {
        fault(reason, at: place(offset))
    }

    private mutating func place(_ offset: Int) -> TextPlaces.Place { places.place(of: offset, in: reader.bytes) }

    private func tooLong(_ place: TextPlaces.Place) -> ManifestError {
        fault(Manifest.Reading.longEntry(maxEntry), at: place)
    }

    private func fault(_ reason: String, at place: TextPlaces.Place) -> ManifestError {
        ManifestError(form: collector.manifest.form, line: place.line, column: place.column, reason)
    }
}

extension String {
    /// The text without leading and trailing white space.
    var trimmingWhitespace: String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || ($0 >= 0x09 && $0 <= 0x0d) }
        guard let start = utf8.firstIndex(where: { !isBlank($0) }), let end = utf8.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[start...end])
    }
}
