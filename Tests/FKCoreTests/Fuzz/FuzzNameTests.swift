import TestSupport
import Testing

/// Whatever URLs, servers and people call a file: what comes out is one safe name in one folder.
@Suite("Fuzzed names")
struct FuzzNameTests {
    private static let id = TaskID(url: "http://example.com/a")

    @Test("from URLs and Content-Disposition are one safe component each", arguments: FuzzRun.shards)
    func served(shard: Int) async throws {
        try await FuzzRun("names", usual: 100_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let url = "http://h.example/" + NastyText.percentEncoded(NastyText.bytes(&random), &random)
            var head: ResponseHead?
            if !random.oneIn(3) {
                let name = NastyText.make(&random)
                let value = random.oneIn(8) ? name : NastyHeader.disposition(name, &random)
                let type = random.oneIn(2) ? "text/html" : NastyText.make(&random)
                head = ResponseHead(
                    status: 200, fields: [.init("Content-Disposition", value), .init("Content-Type", type)],
                    url: "http://h.example/" + name)
            }
            let name = FileNameRules.name(url: url, head: head)
            return Self.fault(name).map {
                "\($0): \(url.debugDescription) \(String(describing: head)) -> \(name.debugDescription)"
            }
        }
    }

    @Test("that were asked for are taken as they are or refused", arguments: FuzzRun.shards)
    func askedFor(shard: Int) async throws {
        try await FuzzRun("names asked for", usual: 100_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let name = NastyText.make(&random)
            guard FileNameRules.fault(inAsked: name) == nil else {
                // The same when the name is made safe: there is always one that can be used.
                return FileNameRules.fault(inAsked: FileNameRules.clean(name)).map { "\(name.debugDescription): \($0)" }
            }
            let isWrong =
                name.utf8.contains { $0 == 0x2f || $0 < 0x20 || $0 == 0x7f } || name.utf8.elementsEqual("..".utf8)
                || name.utf8.elementsEqual(".".utf8) || name.isEmpty || name.utf8.count > 255
                || name.unicodeScalars.contains {
                    $0.properties.generalCategory == .control || $0.properties.isBidiControl
                }
                || name.lowercased().hasSuffix(".fkpart")
            return isWrong ? "taken: \(name.debugDescription)" : nil
        }
    }

    @Test("of barrels never leave their folder", arguments: FuzzRun.shards)
    func barrels(shard: Int) async throws {
        try await FuzzRun("barrel names", usual: 40_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let name = NastyText.make(&random)
            let file = name.barrelFileName
            let isSafe =
                file.utf8.count <= 240 && file.utf8.first != 0x2e
                && file.utf8.allSatisfy {
                    $0 > 0x20 && $0 < 0x7f && $0 != 0x2f && $0 != 0x5c
                }
            if !isSafe { return name.isEmpty ? nil : "\(name.debugDescription) -> \(file.debugDescription)" }
            guard (try? name.validateAsBarrelName()) != nil, !file.contains("%~") else { return nil }
            return Array(file.utf8)[...].percentDecoded == Array(name.utf8) ? nil : "\(name.debugDescription) is lost"
        }
    }

    /// What is wrong with the name of a file that a server or a URL has given.
    static func fault(_ name: String) -> String? {
        if let fault = plainFault(name) { return fault }
        guard FileNameRules.clean(name).utf8.elementsEqual(name.utf8) else { return "another one when cleaned again" }
        for own in [FileNameRules.partName(for: name, id: id), FileNameRules.rejectedName(for: name, id: id)] {
            guard FileNameRules.isOneComponent(own), own.utf8.first == 0x2e, own.contains(id.hex.prefix(16)) else {
                return "our own name for it is \(own.debugDescription)"
            }
        }
        let numbered = FileNameRules.numbered(name, 12)
        if let fault = plainFault(numbered) { return "with a number \(fault)" }
        return numbered.utf8.elementsEqual(name.utf8) ? "no other name with a number" : nil
    }

    private static func plainFault(_ name: String) -> String? {
        let bytes = Array(name.utf8)
        guard let first = bytes.first, let last = name.unicodeScalars.last else { return "empty" }
        if bytes.count > 215 { return "\(bytes.count) bytes long" }
        if bytes.contains(where: { $0 == 0x2f || $0 == 0x5c || $0 < 0x20 || $0 == 0x7f }) {
            return "a path or a control"
        }
        if name.unicodeScalars.contains(where: \.isHidden) { return "invisible characters" }
        if [0x2e, 0x2d, 0x7e, 0x20].contains(first) { return "a bad beginning" }
        if last == "." || last.properties.isWhitespace { return "a bad end" }
        let folded = name.lowercased()
        if folded.hasSuffix(".fkpart") || folded.hasSuffix(".fkrejected") { return "a name of our own kind" }
        if "/\(name)".first != "/" { return "a beginning that joins a slash" }
        let stem = String(folded.utf8.prefix { $0 != 0x2e })?.trimmingCharacters(in: .whitespaces)
        let isDevice = ["con", "prn", "aux", "nul", "com1", "lpt9", "conin$", "conout$"].contains(stem ?? "")
        return isDevice ? "a device" : nil
    }
}
