import TestSupport
import Testing

/// Every state, finished file and kind of change.
@Suite("Known tasks that are asked for again")
struct KnownTaskRulesTests {
    private static let sum = try? Checksum(.sha256, hex: String(repeating: "0", count: 64))
    private static let otherSum = try? Checksum(.sha256, hex: String(repeating: "1", count: 64))

    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// A running attempt reads it as it goes.
        var isLive = false
        var isSame = false
        /// The digest that is left out stays.
        var isKept = false
        /// It is refused where the file is not there to compare.
        var isConflict = false
        var change: @Sendable (inout TaskDescription) -> Void
    }

    static let changes: [Change] = [
        .init(testDescription: "nothing", isSame: true) { _ in },
        .init(testDescription: "all options left out", isKept: true) { $0.options = TaskOptions() },
        .init(testDescription: "headers") { $0.options.headers = [.init("Authorization", "new")] },
        .init(testDescription: "no header") { $0.options.headers = nil },
        .init(testDescription: "secret headers") { $0.options.secretHeaders = ["x"] },
        .init(testDescription: "another checksum", isConflict: true) { $0.options.checksum = otherSum },
        .init(testDescription: "no checksum", isSame: true, isKept: true) { $0.options.checksum = nil },
        .init(testDescription: "the checksum taken away", isLive: true) {
            $0.options.checksum = nil
            $0.words = .dropsDigests
        },
        .init(testDescription: "size") { $0.options.maxSize = 2_000 },
        .init(testDescription: "connections", isLive: true) { $0.options.connections = .fixed(7) },
        .init(testDescription: "rate", isLive: true) { $0.options.rateLimit = 7 },
        .init(testDescription: "attempts", isLive: true) { $0.options.maxAttempts = 7 },
        .init(testDescription: "timeout") { $0.options.timeout = .seconds(7) },
        .init(testDescription: "authorities") { $0.options.caPath = "/other.pem" },
        .init(testDescription: "verified again") { $0.options.insecure = nil },
        .init(testDescription: "proxy") { $0.options.proxy = "http://p:1" },
        .init(testDescription: "no proxy") { $0.options.proxy = nil },
        .init(testDescription: "netrc") { $0.options.netrc = nil },
        .init(testDescription: "existing", isLive: true) { $0.options.existing = .overwrite },
        .init(testDescription: "mirrors") { $0.mirrors = ["http://m.example/a"] },
        .init(testDescription: "type", isLive: true) { $0.type = .foreground },
        .init(testDescription: "priority", isLive: true) { $0.priority = 7 },
    ]

    private static let known: TaskDescription = {
        var task = TaskDescription(url: "http://h.example/a")
        task.directory = "/d"
        task.fileName = "a"
        task.mirrors = ["http://m.example/b"]
        task.options.headers = [.init("Authorization", "old")]
        task.options.checksum = sum
        task.options.maxSize = 1_000
        task.options.insecure = true
        task.options.netrc = true
        task.options.proxy = "http://p:2"
        task.options.existing = .skip
        return task
    }()

    private func decide(
        _ asked: TaskDescription, in state: DownloadState, _ file: KnownTaskRules.File = .gone
    ) throws(DownloadError) -> (task: TaskDescription, effect: KnownTaskRules.Effect) {
        try KnownTaskRules.decide(Self.known, in: state, file: file, length: 1_000, asked: asked)
    }

    private func asked(_ change: Change) -> TaskDescription {
        var asked = Self.known
        change.change(&asked)
        return asked
    }

    /// What is stored for the request.
    private func stored(_ asked: TaskDescription, _ change: Change) -> TaskDescription {
        var task = asked
        task.words = []
        if change.isKept { task.options.checksum = Self.sum }
        return task
    }

    @Test("the orders replace the former ones in every state, facts stay, and it says what follows", arguments: changes)
    func states(_ change: Change) throws {
        let asked = asked(change)
        for state in DownloadState.allCases where ![.complete, .unknown].contains(state) {
            for file in KnownTaskRules.File.allCases {
                if change.isConflict {
                    let error = #expect(throws: DownloadError.self) { try decide(asked, in: state, file) }
                    #expect(error?.code == .checksumMismatch)
                    continue
                }
                let (task, effect) = try decide(asked, in: state, file)
                #expect(task == stored(asked, change))
                switch state {
                case .idle: #expect(effect == (change.isSame ? .nothing : .requeue))
                case .action: #expect(effect == (change.isSame ? .nothing : change.isLive ? .adjust : .restart))
                default: #expect(effect == .queue)
                }
                var loading = asked
                loading.words.insert(.keepsState)
                let loaded = try decide(loading, in: state, file)
                #expect(loaded.task == task)
                #expect(loaded.effect == (state == .idle || state == .action ? effect : .nothing))
            }
        }
    }

    @Test(
        "a finished file is compared where a proof is given, and fetched where it is not the task's",
        arguments: changes)
    func complete(_ change: Change) throws {
        let asked = asked(change)
        for file in KnownTaskRules.File.allCases {
            let counts = file == .own || file == .foreign && asked.options.existing == .skip
            if !counts, change.isConflict {
                #expect(throws: DownloadError.self) { try decide(asked, in: .complete, file) }
                continue
            }
            let (task, effect) = try decide(asked, in: .complete, file)
            #expect(task == stored(asked, change))
            if !counts {
                #expect(effect == .fetchAgain)
                var loading = asked
                loading.words.insert(.keepsState)
                #expect(try decide(loading, in: .complete, file).effect == .nothing)
            } else {
                #expect(effect == (asked.options.checksum != nil ? .compare : .nothing))
            }
        }
    }

    @Test("digests of pieces alone are compared with a finished file too") func pieces() throws {
        var asked = Self.known
        asked.options.checksum = nil
        asked.options.pieces = PieceDigests(.sha256, length: 500, bytes: [UInt8](repeating: 7, count: 64))
        let (task, effect) = try decide(asked, in: .complete, .own)
        #expect(effect == .compare && task.options.pieces == asked.options.pieces && task.options.checksum == Self.sum)
    }

    @Test("a name that is no part of the identity cannot change, in no state", arguments: DownloadState.allCases)
    func name(_ state: DownloadState) throws {
        var asked = Self.known
        asked.fileName = "b"
        let error = #expect(throws: DownloadError.self) { try decide(asked, in: state) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("\"a\"") == true && error?.message.contains("\"b\"") == true)
    }

    @Test("a name that is left out stays") func nameLeftOut() throws {
        var asked = Self.known
        asked.fileName = nil
        #expect(try decide(asked, in: .idle).task == Self.known)
    }

    @Test("a limit below the finished file's length is refused") func size() throws {
        var asked = Self.known
        asked.options.maxSize = 999
        let error = #expect(throws: DownloadError.self) { try decide(asked, in: .complete, .own) }
        #expect(error?.code == .tooLarge)
        #expect(try decide(asked, in: .complete, .gone).effect == .fetchAgain)
    }

    @Test("a task that is being trashed is refused") func trashed() throws {
        let error = #expect(throws: DownloadError.self) { try decide(Self.known, in: .unknown) }
        #expect(error?.code == .cancelled && error?.isRetryable == true)
    }
}
