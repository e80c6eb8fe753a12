import FKMiddleware

/// A request in the mailbox.
///
/// ```text
/// {"version": 2, "verb": {"_0": "suspend", "_1": {"all": {}}}}
/// {"version": 2, "limited": {"_0": {limits}, "_1": {"run": {"_0": {"all": {}}}}}}
/// ```
///
/// A message of version 1 has no version, and is answered in the forms of that version.
package struct EngineMessage: Codable, Sendable {
    /// The newest version, which this process writes.
    static let version = 2
    private static let kinds: [any EngineRequest.Type] = [
        AddTasks.self, AddedTasks.self, VerbRequest.self, ChosenVerbs.self, ToggleRequest.self, ResumeAll.self,
        RunTasks.self, RenewFiles.self, SetAttributes.self, MarkUsed.self, Relink.self, ChangeTasks.self,
        CreateBarrel.self, JoinBarrel.self, LeaveBarrel.self, DeleteBarrel.self, SetLimits.self, SetRateLimit.self,
        AskLimits.self, AddProgram.self, RemoveProgram.self, TrustPrograms.self,
        FollowChanges.self,
    ]

    /// The request.
    package let request: any EngineRequest
    /// Limits for the tasks that the request adds or runs; nil for none.
    package let own: OwnLimits?
    let version: Int

    /// Creates a message.
    package init(_ request: some EngineRequest, own: OwnLimits? = nil) {
        self.init(request, own: own, version: Self.version)
    }

    private init(_ request: any EngineRequest, own: OwnLimits?, version: Int) {
        self.request = request
        self.own = own
        self.version = version
    }

    /// The same message with limits; with nil it is unchanged.
    package func limited(by own: OwnLimits?) -> EngineMessage {
        EngineMessage(request, own: own ?? self.own, version: version)
    }

    /// A message of the same asker with another request.
    func with(_ request: any EngineRequest) -> EngineMessage {
        EngineMessage(request, own: own, version: version)
    }

    private struct Key: CodingKey, ExpressibleByStringLiteral {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init(stringLiteral: String) { stringValue = stringLiteral }
        init?(intValue: Int) { nil }
    }

    /// Reads a message of any version up to `version`.
    package init(from decoder: any Decoder) throws {
        var fields = try decoder.container(keyedBy: Key.self)
        let version = try fields.decodeIfPresent(Int.self, forKey: "version") ?? 1
        var own: OwnLimits?
        if fields.contains("limited") {
            let limited = try fields.nestedContainer(keyedBy: Key.self, forKey: "limited")
            own = try limited.decode(OwnLimits.self, forKey: "_0")
            fields = try limited.nestedContainer(keyedBy: Key.self, forKey: "_1")
        }
        let found = Self.kinds.filter { fields.contains(Key(stringValue: $0.kind)) }
        guard found.count == 1, (1...Self.version).contains(version) else {
            let keys = fields.allKeys.map(\.stringValue).joined(separator: ", ")
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "version \(version) with \(keys)"))
        }
        func request<R: EngineRequest>(_ kind: R.Type) throws -> any EngineRequest {
            try fields.decode(R.self, forKey: Key(stringValue: R.kind))
        }
        self.init(try request(found[0]), own: own, version: version)
    }

    /// Writes the message. A version 1 engine ignores the version.
    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Key.self)
        if version > 1 { try fields.encode(version, forKey: "version") }
        if let own {
            var limited = fields.nestedContainer(keyedBy: Key.self, forKey: "limited")
            try limited.encode(own, forKey: "_0")
            fields = limited.nestedContainer(keyedBy: Key.self, forKey: "_1")
        }
        try fields.encode(request, forKey: Key(stringValue: type(of: request).kind))
    }

    /// The same request, divided into requests that fit into the mailbox.
    package var messages: [EngineMessage] { request.messages.map { with($0) } }

    /// The same request, divided into requests of at most `count` tasks.
    package func portions(of count: Int) -> [EngineMessage] {
        guard let add = request as? AddTasks, add.tasks.count > count else { return [self] }
        return stride(from: 0, to: add.tasks.count, by: count).map {
            var portion = add
            portion.tasks = Array(add.tasks[$0..<min($0 + count, add.tasks.count)])
            return with(portion)
        }
    }
}

extension EngineMessage: Hashable {
    /// Compares request, limits and version.
    package static func == (one: EngineMessage, other: EngineMessage) -> Bool {
        AnyHashable(one.request) == AnyHashable(other.request) && one.own == other.own && one.version == other.version
    }

    /// Hashes the request.
    package func hash(into hasher: inout Hasher) { AnyHashable(request).hash(into: &hasher) }
}
