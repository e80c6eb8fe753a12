import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import fk

/// Lists from anywhere: what is read of them is clean, and what is wrong with them can be shown on a terminal.
@Suite("Fuzzed input lists") struct FuzzInputListTests {
    private static let lists = [
        """
        # one URL a line
        https://example.com/a.iso
        https://one.example/b.iso\thttps://two.example/b.iso
          out=b-renamed.iso
          dir=/data/images
          checksum=sha-256=2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
          header=X-A: b
        http://user:pw@h/ü?q=1#f
        """,
        "\u{feff}http://h/a\r\n  out=x\r\n\r\nhttp://h/b", "http://h/\rhttp://h/2\r\tdir=d\n",
    ]

    @Test("clean entries, or a fault that names its line", arguments: FuzzRun.shards)
    func lists(shard: Int) async throws {
        try await FuzzRun("input lists", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var list = Array(random.pick(Self.lists).utf8)
            for _ in 0...random.below(4) {
                switch random.below(4) {
                case 0: Mutation.apply(&list, with: Array(random.pick(Self.lists).utf8), &random)
                case 1: list.insert(contentsOf: NastyText.bytes(&random), at: random.below(list.count + 1))
                case 2:
                    let line =
                        random.pick(["  out=", "  dir=", "  header=X: ", "  checksum=", "http://h/", "\t"])
                        + NastyText.make(&random)
                    list += Array(("\n" + line + "\n").utf8)
                default: break
                }
            }
            do {
                return try InputList.parse(list, source: "list").lazy.compactMap(Self.fault).first
            } catch let error as InputList.Fault {
                let text = error.description
                if text.unicodeScalars.contains(where: Escaping.isHidden) {
                    return "a fault that cannot be shown: \(text.debugDescription)"
                }
                return error.line > 0 ? nil : "a fault without a line: \(text)"
            }
        }
    }

    private static func fault(_ entry: InputList.Entry) -> String? {
        for url in [entry.url] + entry.mirrors {
            if url.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
                return "a URL with control characters: \(url.debugDescription)"
            }
            // What the builder makes of it holds nothing but ASCII.
            if let normal = try? URLNormalizer.normalize(url), !normal.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) {
                return "not normal: \(normal.debugDescription)"
            }
        }
        for field in entry.headers
        where (field.name + field.value).utf8.contains(where: { $0 == 0x0d || $0 == 0x0a || $0 == 0 }) {
            return "a header of two lines: \(field)"
        }
        for path in [entry.fileName, entry.directory].compactMap(\.self) where path.isEmpty || path.utf8.contains(0) {
            return "a path that ends early: \(path.debugDescription)"
        }
        guard let name = entry.fileName.map(Paths.split)?.name, AskedForName.fault(in: name) == nil else {
            return nil
        }
        return name.utf8.contains(0x2f) ? "a name with a slash: \(name.debugDescription)" : nil
    }
}
