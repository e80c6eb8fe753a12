import FKCore
import FKManifests
import FKMiddleware

/// A command of `fk` that a client of the page asks for. The program carries it out, so that sources and bundles mean the same there
/// and here.
struct ToolCommand: Sendable, Hashable {
    enum Kind: String, Sendable {
        /// What a source has, beside what is known of it.
        case preview
        /// Adds the files of a source.
        case fetch
        /// Follows the source of a barrel.
        case sync
        /// Makes the files of a barrel appear together in a folder.
        case publish
    }

    let kind: Kind
    /// What it is about, without secrets.
    let title: String
    /// The words after the program's name.
    private(set) var words: [String]
    /// The folder in which it runs, as an absolute path.
    let directory: String

    static let maxPatterns = 100
    /// The most bytes of a text of a call.
    static let maxText = 8_192

    /// The members of each method.
    static let members: [Kind: Set<String>] = [
        .preview: ["source", "dir", "barrel", "include", "exclude", "depth", "anonymous"],
        .fetch: ["source", "dir", "barrel", "include", "exclude", "depth", "anonymous"],
        .sync: ["barrel", "dryRun", "delete", "maxDelete"], .publish: ["barrel", "dir", "durability"],
    ]

    struct Place {
        /// The last part of its name.
        var folderName: String
        /// The name without secrets.
        var title: String
    }

    /// The words for a source.
    ///
    /// - Parameters:
    ///   - place: checks the source and names it.
    ///   - known: the folder of a barrel that exists, empty without one; nil for a new barrel.
    init(
        source call: PageCall, _ kind: Kind, _ gate: FolderGate, standard: String?,
        place: (String) throws(RPCError) -> Place, known: (String) throws(RPCError) -> String?
    ) throws(RPCError) {
        let source = try Self.checked(call.needed("source"), "source", call)
        let place = try place(source)
        let given = try call.text("barrel").flatMap { $0.isEmpty ? nil : $0 }
        let barrel = try Self.checked(given ?? place.folderName, "barrel", call)
        var words = kind == .preview ? ["get", "-r", "--dry-run"] : ["barrel", "import", "-r"]
        words += ["--json", "--no-progress"]
        directory = try gate.folder(standard)
        if let dir = try call.text("dir"), !dir.isEmpty {
            words.append("--directory=\(try gate.folder(dir))")
        } else if let folder = try known(barrel) {
            // A barrel of the command line may store its files elsewhere: a client adds none there.
            if !folder.isEmpty { _ = try gate.folder(folder) }
        } else {
            words.append("--directory=\(try gate.folder("\(directory)/\(place.folderName)"))")
        }
        for name in ["include", "exclude"] {
            let patterns = try call.texts(name) ?? []
            guard patterns.count <= Self.maxPatterns else {
                throw RPCError("\(call.method): \(name) has at most \(Self.maxPatterns) patterns.")
            }
            for pattern in patterns { words.append("--\(name)=\(try Self.checked(pattern, name, call))") }
        }
        if call.has("depth"), !call.isNull("depth") {
            words += ["--depth", "\(try call.integer("depth", in: 1...1_000, or: SourceChoice.usualDepth))"]
        }
        if try call.truth("anonymous") { words.append("--anonymous") }
        if kind == .preview { words += ["--barrel=\(barrel)", "--", source] } else { words += ["--", barrel, source] }
        (self.kind, title, self.words) = (kind, place.title, words)
    }

    /// The words for following the source of a barrel.
    init(sync call: PageCall, _ gate: FolderGate) throws(RPCError) {
        let barrel = try Self.checked(call.needed("barrel"), "barrel", call)
        let isDryRun = try call.truth("dryRun")
        let deletes = try call.truth("delete")
        let most = try call.text("maxDelete")
        var words = ["barrel", "sync", "--json", "--no-progress"]
        guard !(isDryRun && deletes) else { throw RPCError("\(call.method): dryRun and delete exclude each other.") }
        guard deletes || most == nil else { throw RPCError("\(call.method): maxDelete needs \"delete\": true.") }
        if isDryRun { words.append("--dry-run") }
        if deletes { words += ["--delete", "--yes"] }
        if let most {
            let digits = most.hasSuffix("%") ? most.dropLast() : most[...]
            guard !digits.isEmpty, digits.utf8.count <= 9, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw RPCError(
                    "\(call.method): maxDelete is a number of files as text, or a percentage such as \"50%\".")
            }
            words += ["--max-delete", most]
        }
        kind = .sync
        title = barrel
        self.words = words + ["--", barrel]
        directory = try gate.folder(nil)
    }

    /// The words for publishing a barrel.
    init(publish call: PageCall, _ gate: FolderGate) throws(RPCError) {
        let barrel = try Self.checked(call.needed("barrel"), "barrel", call)
        let dir = try call.needed("dir")
        guard !dir.isEmpty else { throw RPCError("\(call.method): dir is the name of a folder.") }
        let folder = try gate.folder(dir)
        let durability = try call.text("durability") ?? Configure.Durability.process.rawValue
        guard Configure.Durability(rawValue: durability) != nil else {
            let all = Configure.Durability.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: " or ")
            throw RPCError("\(call.method): durability is \(all).")
        }
        kind = .publish
        title = barrel
        words = [
            "barrel", "publish", "--json", "--no-progress", "--durability", durability, "--", barrel, folder,
        ]
        directory = try gate.folder(nil)
    }

    /// Adds `--no-private`, so that the program keeps to it as the downloads of this server do. The first two words name the command.
    mutating func refusePrivate() { words.insert("--no-private", at: 2) }

    private static func checked(_ text: String, _ name: String, _ call: PageCall) throws(RPCError) -> String {
        guard !text.isEmpty else { throw RPCError("\(call.method): \(name) is empty.") }
        guard text.utf8.count <= maxText, !text.utf8.contains(0) else {
            throw RPCError("\(call.method): \(name) is longer than \(maxText) bytes, or has a zero byte.")
        }
        return text
    }
}
