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
        var change: @Sendable (inout TaskDescription) -> Void
    }

    static let changes: [Change] = [
        .init(testDescription: "nothing", isSame: true) { _ in },
        .init(testDescription: "all options left out") { $0.options = TaskOptions() },
        .init(testDescription: "headers") { $0.options.headers = [.init("Authorization", "new")] },
        .init(testDescription: "no header") { $0.options.headers = nil },
        .init(testDescription: "secret headers") { $0.options.secretHeaders = ["x"] },
        .init(testDescription: "checksum", isLive: true) { $0.options.checksum = otherSum },
        .init(testDescription: "no checksum", isLive: true) { $0.options.checksum = nil },
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

    @Test("the whole set replaces the former in every state, and says what follows", arguments: changes)
    func states(_ change: Change) throws {
        let asked = asked(change)
        for state in DownloadState.allCases where ![.complete, .unknown].contains(state) {
            for file in KnownTaskRules.File.allCases {
                let (task, effect) = try decide(asked, in: state, file)
                #expect(task == asked)
                switch state {
                case .idle: #expect(effect == (change.isSame ? .nothing : .requeue))
                case .action: #expect(effect == (change.isSame ? .nothing : change.isLive ? .adjust : .restart))
                default: #expect(effect == .queue)
                }
            }
        }
    }

    @Test(
        "a finished file is compared where a checksum is given, and fetched where it is not the task's",
        arguments: changes)
    func complete(_ change: Change) throws {
        let asked = asked(change)
        for file in KnownTaskRules.File.allCases {
            let (task, effect) = try decide(asked, in: .complete, file)
            let counts = file == .own || file == .foreign && asked.options.existing == .skip
            if !counts {
                #expect(effect == .fetchAgain && task == asked)
            } else if asked.options.checksum != nil {
                #expect(effect == .compare && task == asked)
            } else {
                var stored = asked
                if file == .own { stored.options.checksum = Self.sum }
                #expect(effect == .nothing && task == stored)
            }
        }
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
