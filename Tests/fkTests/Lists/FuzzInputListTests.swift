import TestSupport
import Testing

@testable import FKCore
@testable import FKManifests
@testable import FKModel
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
                var folders = EntryFolders()
                for entry in try Manifest(parsing: list, as: .urls).entries {
                    guard let task = try? entry.task(in: "/nowhere", TaskOptions(), &folders) else { continue }
                    if let fault = Self.fault(task, entry) { return fault }
                }
                return nil
            } catch let error as ManifestError {
                let text = ListInput.Fault("list", error).description
                if text.unicodeScalars.contains(where: \.isHidden) {
                    return "a fault that cannot be shown: \(text.debugDescription)"
                }
                return error.line > 0 ? nil : "a fault without a line: \(text)"
            }
        }
    }

    private static func fault(_ task: TaskDescription, _ entry: Manifest.Entry) -> String? {
        for url in [task.url] + task.mirrors where !url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) {
            return "not normal: \(url.debugDescription)"
        }
        for field in task.options.headers ?? []
        where (field.name + field.value).utf8.contains(where: { $0 == 0x0d || $0 == 0x0a || $0 == 0 }) {
            return "a header of two lines: \(field)"
        }
        if let folder = entry.directory, folder.isEmpty || folder.utf8.contains(0) { return "a folder that ends early" }
        guard let name = task.fileName, let folder = task.directory else { return nil }
        let parts = folder.utf8.split(separator: 0x2f)
        if parts.contains(where: { $0.elementsEqual("..".utf8) }) || !folder.utf8.starts(with: "/nowhere".utf8) {
            return "a place outside of the folder: \(folder.debugDescription)"
        }
        if name.isEmpty || name.utf8.contains(0) || name.utf8.contains(0x2f) || name == ".." {
            return "a name with a slash: \(name.debugDescription)"
        }
        return nil
    }
}
