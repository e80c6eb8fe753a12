import TestSupport
import Testing

@testable import FKManifests

/// Documents that come in portions: they are read to the same list as in one piece, and what is in memory does not grow
/// with them.
@Suite("Documents in portions") struct ManifestStreamTests {
    private static let hex = SampleDigest.sha256

    /// A document of many files, which are written one by one.
    struct Document: Sendable, CustomTestStringConvertible {
        var form: Manifest.Form
        var start: String
        var end: String
        var separator = ""
        var file: @Sendable (Int) -> String
        var testDescription: String { "\(form) \(start.prefix(20))" }

        func text(_ count: Int) -> String {
            start + (0..<count).map(file).joined(separator: separator) + end
        }
    }

    static let documents = [
        Document(
            form: .metalink4, start: "<metalink xmlns=\"\(MetalinkParser.namespace4)\">\r\n", end: "</metalink>\n",
            file: {
                "<file name=\"d\($0 / 100)/\($0)\">\r\n<!-- \($0) --><size>\($0)</size><hash type=\"sha-256\">\(hex)</hash>"
                    + "<url priority=\"2\">http://h/\($0)?a=1&amp;b</url><url>http://m/\($0)</url></file>\r"
            }),
        Document(
            form: .metalink3,
            start: "<metalink version=\"3.0\" xmlns=\"\(MetalinkParser.namespace3)\"><files>",
            end: "</files></metalink>",
            file: {
                "<file name=\"\($0)\"><verification><hash type=\"md5\">\(SampleDigest.hex(.md5))</hash></verification>\n"
                    + "<resources><url type=\"http\">http://h/\($0)</url></resources></file>\n"
            }),
        Document(form: .json, start: "[", end: "]\n", separator: ",\n") {
            "{\"url\":\"http://h/\($0)\",\"fileName\":\"\($0)\",\"expected\":\($0)}"
        },
        Document(
            form: .json, start: "{\"name\":\"all\",\"members\":[\r\n", end: "],\"origin\":\"http://h/\"}",
            separator: "\r,\r\n"
        ) { "{\"url\":\"http://h/\\u00e9\($0)\",\"checksum\":\"sha-256=\(hex)\"}" },
        Document(form: .hubTree, start: "[", end: "]", separator: ", ") {
            "{\"type\":\"file\",\"oid\":\"\(SampleDigest.hex(.sha1))\",\"size\":\($0),\"path\":\"a/\($0)\"}"
        },
        Document(form: .csv, start: "caption,url,name\r\n", end: "\n", separator: "\r\n") {
            "\"a, \"\"\($0)\n\"\"\",http://h.example/long/folder/\($0),\"d/\($0)\""
        },
        Document(form: .jsonLines, start: "", end: "", separator: "\n") {
            "{\"url\":\"http://h.example/long/folder/\($0)\",\"name\":\"\($0)\"}"
        },
    ]

    /// Reads a document in portions, and hands out the entries after each.
    private static func read(
        _ bytes: [UInt8], as form: Manifest.Form?, portion: () -> Int,
        _ take: (inout ManifestReader, [Manifest.Entry]) -> Void = { _, _ in }
    ) throws -> Manifest {
        var reader = ManifestReader(form)
        var entries: [Manifest.Entry] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + max(1, portion()))
            try reader.take(Array(bytes[start..<end]))
            let taken = reader.takeEntries()
            take(&reader, taken)
            entries += taken
            start = end
        }
        var manifest = try reader.finish()
        manifest.entries = entries + manifest.entries
        return manifest
    }

    @Test("The list is the same as in one piece", arguments: documents) func same(document: Document) throws {
        let bytes = Array(document.text(300).utf8)
        let whole = try Manifest(parsing: bytes)
        #expect(whole.form == document.form && whole.entries.count == 300 && whole.faults.isEmpty)
        var random = SeededRandom(seed: 1)
        for portion in [1, 2, 3, 17, 128, 4_096] {
            #expect(try Self.read(bytes, as: document.form, portion: { portion }) == whole, "\(portion)")
        }
        #expect(try Self.read(bytes, as: nil, portion: { random.below(300) }) == whole)
    }

    @Test("Faults have the line and column that they have in one piece", arguments: documents)
    func faults(document: Document) throws {
        var random = SeededRandom(seed: 2)
        let text = Array(document.text(20).utf8)
        let pieces = ["<", "&", "\u{1}", "</x>", "]", "{", ",", "\"", "\\", "\n\r", "é", "]]>", "-->", "0"]
        for _ in 0..<300 {
            var bytes = text
            bytes.insert(contentsOf: Array(random.pick(pieces).utf8), at: random.below(bytes.count))
            if random.oneIn(3) { bytes.removeLast(random.below(bytes.count)) }
            let whole = Result { try Manifest(parsing: bytes, as: document.form) }
            let size = 1 + random.below(50)
            let parts = Result { try Self.read(bytes, as: document.form, portion: { size }) }
            switch (whole, parts) {
            case (.success(let one), .success(let other)): #expect(one == other)
            case (.failure(let one), .failure(let other)): #expect(one as? ManifestError == other as? ManifestError)
            default: Issue.record("\(whole) \(parts): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
            }
        }
    }

    @Test("Entries and bytes in memory do not grow with the document", arguments: documents, [2_000, 8_000])
    func flat(document: Document, count: Int) throws {
        var most = (entries: 0, bytes: 0)
        let manifest = try Self.read(Array(document.text(count).utf8), as: nil, portion: { 8 << 10 }) { reader, taken in
            most.entries = max(most.entries, taken.count)
            most.bytes = max(most.bytes, reader.heldBytes)
        }
        #expect(manifest.entries.count == count && manifest.faults.isEmpty)
        // The form is recognised in the first 64 KiB, which come out together.
        #expect(most.entries < 1_500, "\(most)")
        #expect(most.bytes < (64 + 3 * 8) << 10, "\(most)")
    }

    @Test("A long text or comment in small portions is read in time, and then let go") func longPart() throws {
        let long = String(repeating: "x ü\n", count: 1 << 18)
        let text =
            "<metalink xmlns=\"\(MetalinkParser.namespace4)\"><!--\(long)--><about>\(long)</about>\n"
            + "<file name=\"a\"><url>http://h/a</url></file>" + String(repeating: "<!-- -->", count: 200_000)
            + "</metalink>"
        var held = 0
        let manifest = try Self.read(Array(text.utf8), as: .metalink4, portion: { 512 }) { reader, _ in
            held = reader.heldBytes
        }
        #expect(manifest.names == ["a"] && manifest.entries[0].line == 2 * (1 << 18) + 2)
        #expect(held < 2_048)
        let note = String(repeating: "x", count: 1 << 20)
        let json = "[{\"url\":\"http://h/a\",\"note\":\"\(note)\"},{\"url\":\"http://h/b\"}]"
        #expect(try Self.read(Array(json.utf8), as: .json, portion: { 512 }).entries.count == 2)
    }

    @Test("An entry, a text or a comment that is longer than is held in memory is refused with its place")
    func limit() throws {
        func fault(_ format: some DocumentFormat, _ text: String) -> String {
            var format = format
            do {
                for byte in text.utf8 { try format.parse([byte]) }
                return "\(try format.finish().entries.count)"
            } catch {
                return error.description
            }
        }
        let start = "<metalink xmlns=\"\(MetalinkParser.namespace4)\">\n"
        let url = "<url>http://h/a</url>"
        let reading = Manifest.Reading()
        let reason = "an entry, text or comment of the document is longer than 1000 bytes"
        func metalink(_ inner: String) -> String {
            fault(MetalinkParser(reading, maxEntry: 1_000), "\(start) \(inner)</metalink>")
        }
        #expect(metalink("<file name=\"a\">\(String(repeating: url, count: 40))</file>") == "1")
        #expect(
            metalink("<file name=\"a\">\(String(repeating: url, count: 60))</file>")
                == "Metalink 4, line 2, column 2: \(reason)")
        #expect(
            metalink("<!--\(String(repeating: "-x", count: 600))-->") == "Metalink 4, line 2, column 2: \(reason)")
        let long = "[\n{\"url\":\"http://h/\(String(repeating: "a", count: 2_000))\"}]"
        #expect(
            fault(JSONDocument(.json, reading, maxEntry: 1_000), long) == "JSON list, line 2, column 1: \(reason)")
        #expect(fault(JSONDocument(.json, reading, maxEntry: 10_000), long) == "1")
    }

    @Test("Names are found among many, and take 16 bytes a slot") func names() {
        var book = Manifest.NameBook()
        for index in 0..<50_000 { #expect(book.add("\(index % 500)/\(index)", line: index + 1) == nil) }
        for index in stride(from: 0, to: 50_000, by: 77) {
            #expect(book.add("\(index % 500)/\(index)", line: 0) == "line \(index + 1) has the same name")
            #expect(book["\(index % 500)/\(index)"] == index + 1 && book["\(index % 500)"] == nil)
        }
        #expect(book.add("7", line: 0) == "line 8 needs a folder of this name")
        #expect(book.add("7/507/x", line: 0) == "line 508 is a file where this name needs a folder")
        #expect(book.bytes == 131_072 * 16)
    }
}
