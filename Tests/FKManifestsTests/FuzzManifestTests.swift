import TestSupport
import Testing

@testable import FKManifests

/// Lists from anywhere: what is read of them is safe, what is wrong with them can be shown, and the XML reader never
/// takes what Foundation's does not.
@Suite("Fuzzed manifests") struct FuzzManifestTests {
    private static let hex = SampleDigest.sha256

    static let samples: [(name: String, text: String)] =
        [
            (
                "list",
                "# c\nhttp://h/a\thttp://m/a\n  out=b/c\n  checksum=md5=\(SampleDigest.hex(.md5))\n  split=4\nhttps://h/ü\r\n"
            ),
            (
                "SHA256SUMS",
                "\(hex)  a/b.bin\n\\\(hex) *c\\\\d\\n\n# x\nSHA512 (e (f)) = \(SampleDigest.hex(.sha512))\nSIZE (e) = 4\n"
            ),
            (
                "CHECKSUM",
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nSHA256 (a) = \(hex)\n-----BEGIN PGP SIGNATURE-----\nx\n-----END PGP SIGNATURE-----\n"
            ),
            ("manifest-sha256.txt", "\(hex)  data/a%0Ab%25\n\(hex)\t*data/c/d\n"),
            ("fetch.txt", "http://h/a 12 data/a\nhttps://h/b - data/b c\n"),
            ("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"),
            (
                "a.lock",
                "{\"fk-lock\":1,\"barrel\":\"m\"}\n{\"name\":\"a/b\",\"size\":3,\"sha-256\":\"\(hex)\",\"url\":\"https://h/a\","
                    + "\"mirrors\":[{\"url\":\"http://m\",\"priority\":2}],\"pieces\":[{\"length\":2,\"type\":\"sha-256\",\"hashes\":\"\(hex)\(hex)\"}]}\n"
            ),
            (
                "a.json",
                "{\"name\":\"x\",\"members\":[{\"url\":\"http://h/a\",\"fileName\":\"a\",\"expected\":3,\"checksum\":\"sha-256=\(hex)\"}]}"
            ),
            (
                "tree.json",
                "[{\"type\":\"file\",\"oid\":\"\(SampleDigest.hex(.sha1))\",\"size\":1,\"path\":\"a/b\",\"lfs\":{\"oid\":\"\(hex)\",\"size\":2}},"
                    + "{\"type\":\"directory\",\"oid\":\"\",\"path\":\"a\"}]"
            ),
            (
                "a.meta4",
                "<?xml version=\"1.0\"?>\n<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"a/b\"><size>3</size><hash "
                    + "type=\"sha-256\">\(hex)</hash><pieces length=\"2\" type=\"sha-256\"><hash>\(hex)</hash><hash>\(hex)</hash></pieces>"
                    + "<url priority=\"1\" location=\"de\">http://h/a?b&amp;c</url><metaurl mediatype=\"torrent\">x</metaurl></file>"
                    + "<file name=\"c\"><!-- --><url><![CDATA[http://h/c]]></url></file></metalink>"
            ),
            (
                "a.metalink",
                "<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\"><files><file name=\"a\"><verification><hash type=\"md5\">"
                    + "\(SampleDigest.hex(.md5))</hash><pieces length=\"9\" type=\"md5\"><hash piece=\"0\">\(SampleDigest.hex(.md5))</hash></pieces>"
                    + "</verification><resources><url type=\"http\" preference=\"9\">http://h/a</url></resources></file></files></metalink>"
            ),
            (
                "a.csv",
                "text,url,name,size,sha256\r\n\"a\n\"\"b\"\",\",http://h/a,\"a/b\",3,\(hex)\r\nb,http://h/b,,,\n"
            ),
            ("a.tsv", "url\tname\tmd5\nhttp://h/a\ta \"b\"\t\(SampleDigest.hex(.md5))\n"),
            (
                "a.jsonl",
                "{\"url\":[\"http://h/a\",\"http://m/a\"],\"name\":\"a\",\"size\":3,\"checksum\":\"sha256:\(hex)\"}\n"
                    + "{\"key\":\"s3://b/c\",\"type\":\"file\"}\n"
            ),
            ("a.zenodo", RecordAnswers.zenodo), ("a.dataverse", RecordAnswers.dataverse),
            ("ro-crate", RecordAnswers.crate),
            ("a.croissant", RecordAnswers.croissant), ("linkset", RecordAnswers.linkset),
        ] + ListShapes.all.map { ($0.name, $0.text) }

    private static func mutated(_ random: inout SeededRandom) -> (name: String, bytes: [UInt8]) {
        let sample = random.pick(samples)
        var bytes = Array(sample.text.utf8)
        for _ in 0..<random.below(4) {
            switch random.below(5) {
            case 0: Mutation.apply(&bytes, with: Array(random.pick(samples).text.utf8), &random)
            case 1: bytes.insert(contentsOf: NastyText.bytes(&random), at: random.below(bytes.count + 1))
            case 2 where sample.text.first == "{" || sample.text.first == "[": JSONMutation.apply(&bytes, &random)
            case 3:
                let piece = random.pick([
                    "<!DOCTYPE a [<!ENTITY x \"y\">]>", "&x;", "&#x0;", "<a>", "</file>", "]]>", "<file name=\"", "..",
                    "/", "\\", "\n", "\"",
                    "{", "[", ",", "\"\"", "url,", "\t", "99999999999999999999", "-1", "\u{0}", "\(hex)",
                ])
                bytes.insert(contentsOf: piece.utf8, at: random.below(bytes.count + 1))
            default:
                let name = NastyText.make(&random)
                let lines = [
                    "\(hex)  \(name)\n", "http://h/\(name)\n", "SHA256 (\(name)) = \(hex)\n", " out=\(name)\n",
                ]
                bytes += Array(random.pick(lines).utf8)
            }
        }
        return (sample.name, bytes)
    }

    @Test("are read safely or refused", arguments: FuzzRun.shards) func lists(shard: Int) async throws {
        try await FuzzRun("manifests", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let (name, bytes) = Self.mutated(&random)
            var reading = Manifest.Reading()
            if random.oneIn(2) { reading.skipsBadEntries = random.oneIn(2) }
            if random.oneIn(2) { reading.baseURL = "http://base/dir" }
            let form = random.oneIn(4) ? random.pick(Manifest.Form.allCases) : nil
            do {
                let manifest = try Manifest(parsing: bytes, as: form, fileName: name, reading)
                return Self.fault(manifest).map { "\($0): \(String(decoding: bytes, as: UTF8.self).debugDescription)" }
            } catch let error as ManifestError {
                return Self.fault(error)
            }
        }
    }

    @Test("that come in portions are the same", arguments: FuzzRun.shards) func portions(shard: Int) async throws {
        try await FuzzRun("manifests in portions", usual: 10_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let (name, bytes) = Self.mutated(&random)
            let form = Manifest.Form.recognize(bytes, fileName: name)
            guard let form else { return nil }
            let whole = Result { try Manifest(parsing: bytes, as: form, fileName: name) }
            var reader = ManifestReader(form, fileName: name)
            var entries: [Manifest.Entry] = []
            let longest = random.pick([2, 20, 200])
            let parts = Result { () throws -> Manifest in
                var start = 0
                while start < bytes.count {
                    let end = min(bytes.count, start + 1 + random.below(longest))
                    try reader.take(Array(bytes[start..<end]))
                    entries += reader.takeEntries()
                    start = end
                }
                var manifest = try reader.finish()
                manifest.entries = entries + manifest.entries
                return manifest
            }
            switch (whole, parts) {
            case (.success(let one), .success(let other)): return one == other ? nil : "another list: \(one) \(other)"
            case (.failure(let one), .failure(let other)):
                return one as? ManifestError == other as? ManifestError ? nil : "another error: \(one) \(other)"
            default: return "read in one way only: \(whole) \(parts)"
            }
        }
    }

    @Test("written in any form are the same list again", arguments: FuzzRun.shards) func written(shard: Int)
        async throws
    {
        try await FuzzRun("written manifests", usual: 4_000, limit: .milliseconds(1_500))(
            shard: shard, of: FuzzRun.shards.count
        ) { random in
            var manifest = Manifest(form: .json)
            var names = Manifest.NameBook()
            for index in 0..<random.below(6) {
                let name = NastyText.make(&random).plainListedPath
                guard name.listedPathFault == nil, names.add(name, line: index) == nil else { continue }
                var entry = Manifest.Entry(
                    name: name, sources: [.init("http://h/\(index)?a=1&b=<x>", priority: 1 + random.below(9))])
                entry.size = Int64(random.below(100))
                entry.digests = [Checksum(listed: .sha256, hex: Self.hex)!]
                manifest.entries.append(entry)
            }
            for output in Manifest.Output.allCases {
                let written = manifest.written(as: output)
                // An empty list of lines is none, and a list of URLs has no names.
                if output == .urls || written.bytes.isEmpty { continue }
                let read = try Manifest(parsing: written.bytes, as: output == .sha256sums ? .checksums : nil)
                // Every entry is read again, or was left out and named.
                let wanted = manifest.sortedEntries.map { $0.name ?? "" }
                if read.entries.count + written.leftOut.count != wanted.count {
                    return "\(output): \(read.names) of \(wanted)"
                }
                if written.leftOut.isEmpty, !zip(read.names, wanted).allSatisfy({ $0.isExactly($1) }) {
                    return "\(output): \(read.names) of \(wanted)"
                }
                if read.written(as: output).bytes != written.bytes { return "\(output): another text" }
            }
            return nil
        }
    }

    @Test("in XML: nothing is taken that Foundation's parser refuses", arguments: FuzzRun.shards) func xml(shard: Int)
        async throws
    {
        try await FuzzRun("XML", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            // libxml2 also refuses namespaces that are no absolute URI.
            let documents = ManifestXMLTests.documents.filter { !$0.contains("xmlns") }
            var bytes = Array(random.pick(documents).utf8)
            for _ in 0...random.below(3) {
                if random.oneIn(2) {
                    let piece = random.pick([
                        "<", ">", "/", "&", ";", "&amp;", "&#65;", "'", "\"", "=", " ", "\n", "\r", "<b>", "</b>",
                        "<b/>", "<![CDATA[", "]]>", "<!--", "-->", "--", "<?p ", "?>", "ü", "\u{1}", "a='1'",
                    ])
                    bytes.insert(contentsOf: piece.utf8, at: random.below(bytes.count + 1))
                } else {
                    Mutation.apply(&bytes, &random)
                }
            }
            // With white space behind it, most of a short document is read before its last portion.
            let padded = bytes + Array(repeating: 0x0a, count: random.below(2 * XMLCursor.lookahead))
            let outcome = ManifestXMLTests.outcome(padded)
            let longest = random.pick([2, 20, 200])
            let streamed = ManifestXMLTests.outcome(padded, portions: (0..<7).map { _ in 1 + random.below(longest) })
            guard outcome == streamed else {
                return "in portions: \(streamed), and not \(outcome): "
                    + String(decoding: bytes, as: UTF8.self).debugDescription
            }
            guard let events = ManifestXMLTests.events(bytes), ManifestXMLTests.isSafeForFoundation(bytes) else {
                return nil
            }
            let wanted = ManifestXMLTests.reference(bytes)
            // Line ends inside of CDATA stay as they are with libxml2; section 2.11 has them all as LF.
            func plain(_ text: String) -> [UInt8] { text.utf8.filter { $0 != 0x0d && $0 != 0x0a } }
            if wanted.map(plain) == plain(events) { return nil }
            return
                "\(events.debugDescription), and not \(wanted.debugDescription): \(String(decoding: bytes, as: UTF8.self).debugDescription)"
        }
    }

    @Test("in JSON: the same is taken that Foundation takes", arguments: FuzzRun.shards) func json(shard: Int)
        async throws
    {
        try await FuzzRun("JSON lists", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var bytes = Array(Self.samples[random.oneIn(2) ? 7 : 8].text.utf8)
            for _ in 0...random.below(3) { JSONMutation.apply(&bytes, &random) }
            var reader = JSONReader(bytes)
            let isWhole = (try? reader.value()) != nil && (try? reader.expectEnd()) != nil
            let isStreamed = Self.isTakenInPortions(bytes, &random)
            guard isWhole || isStreamed else { return nil }
            let wanted = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
            guard wanted == nil else { return nil }
            // Foundation has no numbers beyond its own.
            let text = String(decoding: bytes, as: UTF8.self)
            let isLong = text.split { !$0.isNumber }.contains { $0.count > 15 }
            return isLong || text.contains("e999") || text.contains("e308")
                ? nil : "taken: \(text.prefix(2_000).debugDescription)"
        }
    }

    /// True if a JSON list is read to its end in portions.
    private static func isTakenInPortions(_ bytes: [UInt8], _ random: inout SeededRandom) -> Bool {
        var list = JSONList(.json)
        var rest = bytes[...]
        do {
            while !rest.isEmpty {
                let portion = rest.prefix(1 + random.below(40))
                rest = rest.dropFirst(portion.count)
                list.append(Array(portion))
                if rest.isEmpty { list.finish() }
                reading: while true {
                    switch try list.next() {
                    case .more: break reading
                    case .done: return true
                    case .element, .member, .container: continue
                    }
                }
            }
            return false
        } catch {
            return false
        }
    }

    private static func fault(_ error: ManifestError) -> String? {
        let text = error.description
        if text.unicodeScalars.contains(where: \.isHidden) {
            return "an error that cannot be shown: \(text.debugDescription)"
        }
        return text.utf8.count < 200_000 ? nil : "an error of \(text.utf8.count) bytes"
    }

    private static func fault(_ manifest: Manifest) -> String? {
        for error in manifest.faults { if let fault = fault(error) { return fault } }
        for entry in manifest.entries {
            if let name = entry.name {
                let parts = name.utf8.split(separator: 0x2f, omittingEmptySubsequences: false)
                let leaves = parts.contains { $0.elementsEqual("..".utf8) || $0.isEmpty || $0.count > 255 }
                if leaves || name.utf8.contains(0) || name.utf8.first == 0x2f {
                    return "the name \(name.debugDescription)"
                }
            }
            for source in entry.sources where !source.url.lowercased().hasPrefix("http") {
                return "the address \(source.url)"
            }
            if entry.digests.contains(where: { $0.hex.utf8.count != $0.algorithm.byteCount * 2 }) { return "a digest" }
            if let size = entry.size, size < 0 { return "the size \(size)" }
            for pieces in entry.pieces where pieces.length < 1 || pieces.bytes.count % pieces.algorithm.byteCount != 0 {
                return "pieces \(pieces)"
            }
        }
        return nil
    }
}
