import TestSupport
import Testing

@testable import FKManifests

@Suite("Fuzzed addresses of lists and hubs") struct FuzzAddressTests {
    @Test("base URLs: a name is below its folder, and is read again as the same name", arguments: FuzzRun.shards)
    func bases(shard: Int) async throws {
        try await FuzzRun("base URLs", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let base = BaseURL(random.pick(["http://h/dir", "https://h:8/a/b/?x=1#f", "http://h", "http://h/ü/"]))
            let name = NastyText.make(&random).plainListedPath
            guard name.listedPathFault == nil else { return nil }
            let url = base.url(of: name)
            guard let normal = try? url.normalizedURL() else { return "no URL: \(url)" }
            let path = URLParts(normal).path
            let part = path.utf8.split(separator: 0x2f).last.map { String(Substring($0)) } ?? ""
            let last = name.utf8.split(separator: 0x2f).last.map { String(Substring($0)) } ?? ""
            guard Array(part.utf8)[...].percentDecoded.elementsEqual(last.utf8) else {
                return "\(name.debugDescription): \(url)"
            }
            for reference in [name, "/" + name, "//o/" + name, NastyText.make(&random)] {
                let resolved = base.resolve(reference)
                if resolved.isEmpty { return "nothing for \(reference)" }
                _ = resolved.urlFault
            }
            return nil
        }
    }

    @Test("references to hubs, patterns and pages of their lists end in time", arguments: FuzzRun.shards)
    func hubs(shard: Int) async throws {
        try await FuzzRun("hubs", usual: 10_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let text = "hf:" + (random.oneIn(2) ? "datasets/" : "") + "o/" + NastyText.make(&random)
            if let reference = try? HubReference(parsing: text) {
                let again = try HubReference(parsing: reference.description)
                if again != reference { return "\(text): \(reference), then \(again)" }
            }
            let record = random.pick(["doi:10.1/", "doi:10.", "zenodo:", "http://h/", "https://doi.org/10.1/"])
            func place(_ text: String) throws -> SourcePlace? {
                try SourceReference(text).map { try Records().place(of: $0, in: [:]) }
            }
            if let source = try? place(record + NastyText.make(&random)) {
                guard let again = try place(source.title) else { return "\(source.title) is no name" }
                if again.title != source.title { return "\(source.title), then \(again.title)" }
            }
            var pattern = ""
            for _ in 0..<random.below(12) {
                pattern += random.pick(["*", "?", "[", "]", "!", "a-", "a", "/", "\\", "**", NastyText.make(&random)])
            }
            _ = HubPattern(pattern).matches(
                NastyText.make(&random) + "/" + String(repeating: "a", count: random.below(60)))
            return nil
        }
    }
}
