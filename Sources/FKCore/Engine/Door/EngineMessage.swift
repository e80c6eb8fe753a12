import FKMiddleware

/// A request in the mailbox.
///
/// ```text
/// {"version": 2, "verb": {"_0": "suspend", "_1": {"all": {}}}}
/// {"version": 2, "limited": {"_0": {limits}, "_1": {"run": {"_0": {"all": {}}}}}}
/// ```
///
/// A message of version 1 has no version, and is answered in the forms of that version.
package struct EngineMessage: Codable, Sendable, Hashable {
    /// The newest version, which this process writes.
    static let version = 2

    package let request: EngineRequest
    /// Limits for the tasks that the request adds or runs; nil for none.
    package let own: OwnLimits?
    let version: Int

    package init(_ request: EngineRequest, own: OwnLimits? = nil) {
        self.init(request, own: own, version: Self.version)
    }

    private init(_ request: EngineRequest, own: OwnLimits?, version: Int) {
        self.request = request
        self.own = own
        self.version = version
    }

    /// The same message with limits; with nil it is unchanged.
    package func limited(by own: OwnLimits?) -> EngineMessage {
        EngineMessage(request, own: own ?? self.own, version: version)
    }

    /// A message of the same asker with another request.
    func with(_ request: EngineRequest) -> EngineMessage {
        EngineMessage(request, own: own, version: version)
    }

    private enum CodingKeys: String, CodingKey { case version, limited }
    private enum LimitedKeys: String, CodingKey {
        case own = "_0"
        case request = "_1"
    }

    /// Reads a message of any version up to `version`.
    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        let version = try fields.decodeIfPresent(Int.self, forKey: .version) ?? 1
        guard (1...Self.version).contains(version) else {
            throw DecodingError.dataCorruptedError(
                forKey: .version, in: fields, debugDescription: "version \(version) is not known")
        }
        if fields.contains(.limited) {
            let limited = try fields.nestedContainer(keyedBy: LimitedKeys.self, forKey: .limited)
            request = try limited.decode(EngineRequest.self, forKey: .request)
            own = try limited.decode(OwnLimits.self, forKey: .own)
        } else {
            request = try EngineRequest(from: decoder)
            own = nil
        }
        self.version = version
    }

    /// Writes the message. A version 1 engine ignores the version.
    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        if version > 1 { try fields.encode(version, forKey: .version) }
        guard let own else { return try request.encode(to: encoder) }
        var limited = fields.nestedContainer(keyedBy: LimitedKeys.self, forKey: .limited)
        try limited.encode(own, forKey: .own)
        try limited.encode(request, forKey: .request)
    }

    /// A reply in the form of the message's version: version 1 gives some numbers in a line for people.
    func form(_ reply: EngineReply) -> EngineReply {
        switch (version, request, reply) {
        case (1, .setAttributes, .count(let count)):
            .done(note: "attributes of \(count.plural("task")) changed")
        case (1, .markUsed, .count(let count)): .done(note: "\(count.plural("task")) marked as used")
        default: reply
        }
    }

    /// The same request, divided into requests that fit into the mailbox.
    package var messages: [EngineMessage] { request.messages.map { with($0) } }

    /// The same request, divided into requests of at most `count` tasks.
    package func portions(of count: Int) -> [EngineMessage] {
        guard case .add(let tasks, let barrel, let run) = request, tasks.count > count else { return [self] }
        return stride(from: 0, to: tasks.count, by: count).map {
            with(.add(tasks: Array(tasks[$0..<min($0 + count, tasks.count)]), barrel: barrel, run: run))
        }
    }
}
