import TestSupport
import Testing

/// Nasty names on the way to the disk, into folders full of traps.
@Suite("Fuzzed publishing")
struct FuzzPublishingTests {
    private static let content = Bytes.pattern(count: 3_000)

    @Test(
        "writes nowhere but into the folder, and over nothing that is somebody else's",
        arguments: [nil, .rename, .refuse, .skip, .overwrite] as [ExistingFilePolicy?])
    func traps(policy: ExistingFilePolicy?) async throws {
        var random = SeededRandom(seed: UInt64(policy.map { $0.rawValue.utf8.count } ?? 1))
        let folder = try TemporaryFolder()
        let traps = try TrapFolder(in: folder)
        var tasks: [(task: TaskDescription, disposition: String?)] = []
        for number in 0..<120 {
            let name = NastyText.make(&random)
            let url =
                "http://h.example/\(number)/" + NastyText.percentEncoded(NastyText.bytes(&random).suffix(200), &random)
            var builder = try Builder(url)
            builder.directory = folder.path + "/out"
            builder.options.existing = policy
            if random.oneIn(3) { try? builder.setFileName(name) }
            let disposition = random.oneIn(2) ? NastyHeader.disposition(name, &random) : nil
            let head = disposition.map {
                ResponseHead(status: 200, fields: [.init("Content-Disposition", $0)], url: url)
            }
            let likely = builder.fileName ?? FileNameRules.name(url: builder.url, head: head)
            if !random.oneIn(3) { try traps.set(likely, &random) }
            if random.oneIn(8) {
                try traps.set(
                    FileNameRules.partName(for: likely, id: builder.description.id), &random, mayBeFile: false)
            }
            tasks.append((builder.description, disposition))
        }
        let before = try traps.foreign()
        let dispositions = Dictionary(tasks.map { ($0.task.url, $0.disposition) }, uniquingKeysWith: { $1 })
        let bench = try await Bench(in: folder) { request, _ in
            let value = dispositions[request.urlRequest.url?.absoluteString ?? ""] ?? nil
            return .file(Self.content, to: request, fields: value.map { [.init("Content-Disposition", $0)] } ?? [])
        }
        let replies = try await bench.engine.add(tasks.map(\.task), barrel: nil, run: true)
        await bench.engine.waitUntilSettled(replies.map(\.id))
        var complete = 0
        for reply in replies {
            guard let info = await bench.messager.info(.id(reply.id)), info.state == .complete, let path = info.path
            else { continue }
            complete += 1
            #expect(path.folderPart == bench.out && FileNameRules.isOneComponent(path.lastPathPart))
            #expect(!path.unicodeScalars.contains { $0.isHidden }, "\(path.debugDescription)")
            if try bench.stored(reply.id).isForeign != true { #expect(try bytes(path) == Self.content) }
        }
        #expect(complete > 20)
        await bench.downloader.close()
        #expect(try traps.outside() == TrapFolder.untouched)
        // Who asks for it may replace files and links; folders and pipes are nobody's to replace.
        for (name, kind) in before where policy != .overwrite || !kind.isReplaceable {
            #expect(try traps.foreign()[name] == kind, "\(name.debugDescription)")
        }
        if policy == .overwrite {
            for name in bench.names { #expect(FileNameRules.isOneComponent(name)) }
        }
    }

    @Test("a folder swapped for a symlink in the middle: an error, and nothing lies outside", arguments: 0..<6)
    func swapped(seed: Int) async throws {
        var random = SeededRandom(seed: UInt64(seed))
        let folder = try TemporaryFolder()
        let traps = try TrapFolder(in: folder)
        let gate = TestGate()
        let name = NastyText.make(&random)
        let head = NastyHeader.disposition(name, &random)
        let content = Bytes.pattern(count: 400_000)
        let bench = try await Bench(in: folder) { request, _ in
            .file(content, to: request, gate: gate, pauseAt: 300_000, fields: [.init("Content-Disposition", head)])
        }
        // The folder itself, or one above it.
        let isParent = seed % 2 == 1
        let id = try await bench.add("a") { $0.directory = bench.out + "/sub/inner" }
        await gate.reached()
        let swapped = bench.out + (isParent ? "/sub" : "/sub/inner")
        #expect(rename(swapped, folder.path + "/moved") == 0)
        #expect(symlink(traps.outsidePath, swapped) == 0)
        gate.open()
        let info = await bench.finished(id)
        #expect(info?.state == .error && info?.error?.code == .destination)
        await bench.downloader.close()
        let arrived = folder.path + "/moved" + (isParent ? "/inner" : "")
        let names = try FileIO.names(in: arrived)
        #expect(names.allSatisfy { $0.hasSuffix(".fkpart") } && names.count == 1)
        #expect(try traps.outside() == TrapFolder.untouched)
    }
}

/// A destination with things in the way, and a folder beside it into which some of them lead.
private final class TrapFolder {
    enum Kind: Hashable {
        case file([UInt8])
        case link(String)
        case folder
        case pipe

        var isReplaceable: Bool {
            switch self {
            case .file, .link: true
            case .folder, .pipe: false
            }
        }
    }

    static let untouched = ["victim": Kind.file([1, 2, 3]), "empty": .folder]

    private let out: String
    let outsidePath: String
    private var names: Set<[UInt8]> = []

    init(in folder: TemporaryFolder) throws {
        out = folder.path + "/out"
        outsidePath = folder.path + "/outside"
        try folder.write([1, 2, 3], to: "outside/victim")
        try FileIO.makeFolder(outsidePath + "/empty")
        try FileIO.makeFolder(out)
    }

    /// Puts something under that name, where nothing is yet.
    ///
    /// - Parameter mayBeFile: false for the name of a part file: a file of that name is one of ours that was lost.
    func set(_ name: String, _ random: inout SeededRandom, mayBeFile: Bool = true) throws {
        let path = out + "/" + name
        guard FileNameRules.isOneComponent(name) else { return }
        let done: Bool
        switch random.below(mayBeFile ? 6 : 5) {
        case 0: done = symlink(outsidePath + "/victim", path) == 0
        case 1: done = symlink(outsidePath + "/new", path) == 0
        case 2: done = symlink(outsidePath, path) == 0
        case 3: done = mkdir(path, 0o700) == 0
        case 4: done = mkfifo(path, 0o600) == 0
        default:
            done = access(path, F_OK) != 0 && (try? write([7, 7, UInt8(random.below(256))], path)) != nil
        }
        if done { names.insert(Array(name.utf8)) }
    }

    func outside() throws -> [String: Kind] {
        try Dictionary(
            uniqueKeysWithValues: FileIO.names(in: outsidePath).map { ($0, try Self.kind(outsidePath + "/" + $0)) })
    }

    /// What was put there, as it is now.
    func foreign() throws -> [String: Kind] {
        var found: [String: Kind] = [:]
        for name in names {
            let name = String(decoding: name, as: UTF8.self)
            found[name] = try? Self.kind(out + "/" + name)
        }
        return found
    }

    private static func kind(_ path: String) throws -> Kind {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw DownloadError(system: errno, "look at", path) }
        switch status.st_mode & S_IFMT {
        case S_IFLNK: return .link(try FileManager.default.destinationOfSymbolicLink(atPath: path))
        case S_IFDIR: return .folder
        case S_IFREG: return .file(try bytes(path))
        default: return .pipe
        }
    }
}
