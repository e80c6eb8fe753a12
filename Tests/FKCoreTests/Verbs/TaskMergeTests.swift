import TestSupport
import Testing

@testable import FKModel

/// Each cell of the table in `MergeOutcome`.
@Suite("Words that meet those of a known task")
struct TaskMergeTests {
    private static func sum(_ digit: String, _ algorithm: Checksum.Algorithm = .sha256) -> Checksum? {
        try? Checksum(algorithm, hex: String(repeating: digit, count: algorithm.byteCount * 2))
    }
    private static func pieces(_ byte: UInt8, length: Int64 = 500) -> PieceDigests? {
        PieceDigests(.sha256, length: length, bytes: [UInt8](repeating: byte, count: 64))
    }

    private static func signature(_ key: String) -> FileSignature? {
        try? StoreJSON.decode(FileSignature.self, from: Array("{\"key\":\"\(key)\",\"signature\":\"YQ==\"}".utf8))
    }

    /// A fact with two values.
    struct Fact: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var isDigest = false
        var set: @Sendable (inout TaskFacts, _ isFirst: Bool) -> Void
        var isEqual: @Sendable (TaskFacts, TaskFacts) -> Bool
    }

    static let facts: [Fact] = [
        .init(
            testDescription: "checksum", isDigest: true, set: { $0.checksum = sum($1 ? "a" : "b") },
            isEqual: { $0.checksum == $1.checksum }),
        .init(
            testDescription: "pieces", isDigest: true, set: { $0.pieces = pieces($1 ? 1 : 2) },
            isEqual: { $0.pieces == $1.pieces }),
        .init(
            testDescription: "signature", set: { $0.signature = signature($1 ? "k" : "l") },
            isEqual: { $0.signature == $1.signature }),
        .init(testDescription: "size", set: { $0.size = $1 ? 1 : 2 }, isEqual: { $0.size == $1.size }),
        .init(
            testDescription: "mirrors", set: { $0.mirrors = [$1 ? "http://a/" : "http://b/"] },
            isEqual: { $0.mirrors == $1.mirrors }),
        .init(
            testDescription: "list", set: { $0.list = ListOrigin($1 ? "one" : "two", signer: nil) },
            isEqual: { $0.list == $1.list }),
        .init(
            testDescription: "entityTag", set: { $0.entityTag = $1 ? "\"1\"" : "\"2\"" },
            isEqual: { $0.entityTag == $1.entityTag }),
    ]

    @Test("a fact: kept, added, replaced, removed, conflict", arguments: facts)
    func fact(_ fact: Fact) throws {
        let none = TaskFacts()
        var (first, second) = (none, none)
        fact.set(&first, true)
        fact.set(&second, false)
        let name = fact.testDescription
        for (known, asked, outcome, after) in [
            (none, none, MergeOutcome.kept, none), (first, none, .kept, first), (first, first, .kept, first),
            (none, first, .added, first),
        ] {
            #expect(known.outcomes(with: asked)[name] == outcome)
            #expect(fact.isEqual(try known.joined(with: asked), after))
        }
        if fact.isDigest {
            #expect(first.outcomes(with: second)[name] == .conflict)
            let error = #expect(throws: DownloadError.self) { try first.joined(with: second) }
            #expect(error?.code == .checksumMismatch && error?.remedy == .dropDigest)
        } else {
            #expect(first.outcomes(with: second)[name] == .replaced)
            #expect(fact.isEqual(try first.joined(with: second), second))
        }
        for other in [TaskFacts.OtherDigest.replaces, .isProven] {
            #expect(first.outcomes(with: second, other: other)[name] == .replaced)
            #expect(fact.isEqual(try first.joined(with: second, other: other), second))
        }
        let takesAway = fact.isDigest || name == "list" || name == "entityTag"
        #expect(first.outcomes(with: none, drops: true)[name] == (takesAway ? .removed : .kept))
        #expect(fact.isEqual(try first.joined(with: none, drops: true), takesAway ? none : first))
    }

    @Test("a conflict names both digests") func conflict() throws {
        var (known, asked) = (TaskFacts(), TaskFacts())
        (known.checksum, asked.checksum) = (Self.sum("a"), Self.sum("b", .md5))
        let error = #expect(throws: DownloadError.self) { try known.joined(with: asked) }
        for sum in [known.checksum, asked.checksum] {
            #expect(error?.message.contains(try #require(sum).description) == true)
        }
    }

    @Test("of two digests that the finished file has, the stronger one stays") func stronger() throws {
        var (known, asked) = (TaskFacts(), TaskFacts())
        (known.checksum, asked.checksum) = (Self.sum("a"), Self.sum("b", .md5))
        #expect(try known.joined(with: asked, other: .isProven).checksum == known.checksum)
        #expect(try asked.joined(with: known, other: .isProven).checksum == known.checksum)
    }

    @Test("other pieces of a file with the same digest are no conflict") func otherPieces() throws {
        var known = TaskFacts()
        known.checksum = Self.sum("a")
        var asked = known
        (known.pieces, asked.pieces) = (Self.pieces(1), Self.pieces(2, length: 600))
        #expect(try known.joined(with: asked).pieces == asked.pieces)
    }

    // MARK: Orders

    /// Two values of each order.
    private static func options(_ isFirst: Bool) -> TaskOptions {
        var options = TaskOptions()
        options.headers = [.init("X", isFirst ? "1" : "2")]
        options.secretHeaders = [isFirst ? "x" : "y"]
        options.listHeaders = [isFirst ? "x" : "y"]
        options.maxSize = isFirst ? 1 : 2
        options.expectedType = isFirst ? "file" : "image/*"
        options.minFree = isFirst ? 1 : 2
        options.connections = .fixed(isFirst ? 1 : 2)
        options.mirrorPolicy = isFirst ? .prove : .combine
        options.rateLimit = isFirst ? 1 : 2
        options.maxAttempts = isFirst ? 1 : 2
        options.deadline = Date(timeIntervalSince1970: isFirst ? 1 : 2)
        options.pinnedPublicKey = isFirst ? "a" : "b"
        options.insecure = isFirst
        options.proxy = isFirst ? "a" : "b"
        options.netrc = isFirst
        options.existing = isFirst ? .skip : .rename
        options.reuse = isFirst
        options.httpVersion = isFirst ? .http1 : .http2
        options.dnsServers = isFirst ? "1" : "2"
        options.dohURL = isFirst ? "a" : "b"
        options.awsSignature = isFirst ? "a" : "b"
        options.clientCertificate = ClientCertificate(file: URL(fileURLWithPath: isFirst ? "/a" : "/b"))
        options.addressFamily = isFirst ? .ipv4 : .ipv6
        options.interface = isFirst ? "a" : "b"
        options.hostAddresses = [isFirst ? "h:1:127.0.0.1" : "h:1:::1"].compactMap { try? HostAddress($0) }
        options.noPrivate = isFirst
        options.remoteTime = isFirst
        options.loginHost = isFirst ? "a" : "b"
        options.adoptPath = isFirst ? "/a" : "/b"
        options.caPath = isFirst ? "/a" : "/b"
        options.cookiePath = isFirst ? "/a" : "/b"
        options.timeoutSeconds = isFirst ? 1 : 2
        options.stallSeconds = isFirst ? 1 : 2
        options.runSeconds = isFirst ? 1 : 2
        return options
    }

    @Test("each stored option is a fact or an order, and the test has two values of each") func complete() {
        let names = Mirror(reflecting: TaskOptions()).children.compactMap(\.label)
        let orders = Set(TaskOptions.orders.map(\.name)).union(TaskOptions.headerNames)
        #expect(orders.isDisjoint(with: TaskOptions.factNames))
        #expect(orders.union(TaskOptions.factNames) == Set(names))
        let (first, second) = (Self.options(true), Self.options(false))
        for order in TaskOptions.orders {
            #expect(order.outcome(first, second, .takesAll) == .replaced, "\(order.name)")
        }
    }

    @Test("an order: kept, added, replaced, removed", arguments: TaskOrders.Rule.allCases)
    func order(_ rule: TaskOrders.Rule) {
        let (none, first, second) = (TaskOptions(), Self.options(true), Self.options(false))
        for order in TaskOptions.orders {
            #expect(order.outcome(none, none, rule) == .kept)
            #expect(order.outcome(none, first, rule) == .added)
            #expect(order.outcome(first, first, rule) == .kept)
            #expect(order.outcome(first, second, rule) == (rule == .fillsGaps ? .kept : .replaced))
            #expect(order.outcome(first, none, rule) == (rule == .takesAll ? .removed : .kept))
        }
        func joined(_ known: TaskOptions, _ asked: TaskOptions) -> TaskOptions {
            TaskOrders(options: known).joined(with: TaskOrders(options: asked), rule).options
        }
        #expect(joined(none, first) == first)
        #expect(joined(first, second) == (rule == .fillsGaps ? first : second))
        #expect(joined(first, none) == (rule == .takesAll ? none : first))
    }

    @Test(
        "secrets keep their origin: those of another origin take its place, or are not taken",
        arguments: TaskOrders.Rule.allCases)
    func secretOrigins(_ rule: TaskOrders.Rule) {
        var (known, asked, plain) = (TaskOptions(), TaskOptions(), TaskOptions())
        (known.headers, known.netrc) = ([HeaderField("Authorization", "a")], true)
        known.secretOrigin = "https://a.example/"
        asked.cookiePath = "/cookies"
        plain.maxSize = 1
        func joined(_ known: TaskOptions, _ asked: TaskOptions) -> TaskOptions {
            TaskOrders(options: known).joined(with: TaskOrders(options: asked), rule).options
        }
        let both = joined(known, asked)
        #expect(both == (rule == .fillsGaps ? known : asked))
        let kept = joined(known, plain)
        #expect(kept.secretOrigin == (rule == .takesAll ? nil : known.secretOrigin) && kept.maxSize == 1)
        #expect(kept.headers == (rule == .takesAll ? nil : known.headers))
        #expect(joined(plain, known).secretOrigin == known.secretOrigin)
    }

    @Test("a call adds header fields to those of other names, with what is said of them")
    func headers() {
        var (known, asked) = (TaskOptions(), TaskOptions())
        known.headers = [HeaderField("Authorization", "a"), HeaderField("X-A", "1")]
        (known.secretHeaders, known.listHeaders) = (["x-a", "authorization"], ["x-a"])
        (asked.headers, asked.secretHeaders) = ([HeaderField("x-a", "2"), HeaderField("X-B", "3")], ["x-b"])
        let joined = TaskOrders(options: known).joined(with: TaskOrders(options: asked), .takesNamed).options
        #expect(joined.headers?.map(\.value) == ["a", "2", "3"])
        #expect(joined.secretHeaders == ["authorization", "x-b"] && joined.listHeaders == nil)
        let command = TaskOrders(options: known).joined(with: TaskOrders(options: asked), .takesAll).options
        #expect(command == asked)
    }

    @Test(
        "a list's fields are for the addresses of its entry: a mirror of another word gets no secret ones",
        arguments: TaskOrders.Rule.allCases)
    func listHeaders(_ rule: TaskOrders.Rule) throws {
        func task(_ mirrors: [String], _ headers: [HeaderField]?, list: [String]?) -> TaskDescription {
            var task = TaskDescription(url: "http://own.example/a")
            task.mirrors = mirrors
            (task.options.headers, task.options.listHeaders) = (headers, list)
            switch rule {
            case .takesAll: break
            case .takesNamed: task.words = [.keepsOrders]
            case .fillsGaps: task.words = [.keepsOrders, .fillsOptions]
            }
            return task
        }
        func mirrorGets(_ known: TaskDescription, _ asked: TaskDescription) throws -> [String] {
            let joined = try known.joined(with: asked)
            return joined.options.headers(for: joined.mirrors[0], of: joined.url).map(\.value)
        }
        let mirror = "http://mirror.example/a"
        let key = [HeaderField("X-Api-Key", "k")]
        // The entry has the mirror.
        let whole = task([mirror], key, list: ["x-api-key"])
        #expect(try mirrorGets(whole, whole) == ["k"])
        // It has none, and another word names one, or has named it before.
        let alone = task([], key, list: ["x-api-key"])
        #expect(try mirrorGets(alone, task([mirror], nil, list: nil)) == [])
        #expect(try mirrorGets(task([mirror], nil, list: nil), alone) == [])
        // Another list's entry with fields of its own.
        let other = task([mirror], [HeaderField("X-Other-Key", "o")], list: ["x-other-key"])
        #expect(try mirrorGets(alone, other) == (rule == .fillsGaps ? [] : ["o"]))
        // Fields that are no secrets go to every mirror.
        let plain = task([], [HeaderField("User-Agent", "lab")], list: ["user-agent"])
        let isKept = rule != .takesAll
        #expect(try mirrorGets(plain, task([mirror], nil, list: nil)) == (isKept ? ["lab"] : []))
    }

    @Test("type and priority: what is named is taken, a command takes all", arguments: TaskOrders.Rule.allCases)
    func places(_ rule: TaskOrders.Rule) {
        let known = TaskOrders(type: .foreground, priority: 7)
        let silent = known.joined(with: TaskOrders(), rule)
        #expect(silent == (rule == .takesAll ? TaskOrders(type: .background, priority: 0) : known))
        let named = known.joined(with: TaskOrders(type: .background, priority: 0), rule)
        #expect(named.priority == 0 && named.type == .background)
    }

    @Test("a description is joined as its words say, and they are not stored") func words() throws {
        var known = TaskDescription(url: "http://h.example/a")
        known.mirrors = ["http://m.example/a"]
        known.priority = 5
        known.options = Self.options(true)
        known.options.checksum = Self.sum("a")
        var asked = TaskDescription(url: known.url)
        asked.words = .keepsOrders
        #expect(try known.joined(with: asked) == known)
        asked.words = [.keepsOrders, .namesMirrors, .namesPriority]
        var expected = known
        (expected.mirrors, expected.priority) = ([], 0)
        #expect(try known.joined(with: asked) == expected)
        asked.words = []
        expected = TaskDescription(url: known.url)
        expected.mirrors = known.mirrors
        expected.options.checksum = Self.sum("a")
        #expect(try known.joined(with: asked) == expected)
        asked.words = [.dropsDigests]
        expected.options.checksum = nil
        #expect(try known.joined(with: asked) == expected)
    }
}
