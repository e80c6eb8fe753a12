import TestSupport

/// What is in force for a task, as far as courses say anything about it.
struct InForce: Equatable {
    /// SHA-256 in hexadecimal digits.
    var digest: String?
    /// Orders by their names; header fields by their names in lower case.
    var orders: [String: String] = [:]
    var priority = 0
}

/// Who says a word.
enum Speaker {
    /// `fk get`, with options or with a list of the owner: the last word about orders. It takes no fact away.
    case command
    /// A call of the library: what it names is joined with what is in force, and nothing is taken away.
    case call
    /// A list that a server has sent: facts alone.
    case server
}

/// What can be wrong with a course.
enum SpeakerFinding: String, CaseIterable {
    /// A list of a server has given an order.
    case listOrders
    /// A secret was sent to a host for which it was not given.
    case foreignSecret
    /// A word that nobody has taken back is no longer in force.
    case lostWord
    /// An order is in force that the owner's last word does not have.
    case staleWord
    /// Two work paths write one part file, or one has taken the other's part away; or a file is neither version.
    case twoWriters
    /// A file was published that a digest excludes: that of a word, or that of the first server.
    case otherFile
    /// A file of the user was replaced or made that no command names.
    case touchedFile
    /// A task neither ends nor waits for anybody.
    case noEnd

    /// The findings that this base has. A course ignores them and goes on.
    static let known: Set<Self> = []

    /// `known`, or those of the environment: `FK_FUZZ_TOLERATE=lostWord,twoWriters`, `FK_FUZZ_TOLERATE=none`.
    static let tolerated: Set<Self> =
        ProcessInfo.processInfo.environment["FK_FUZZ_TOLERATE"].map { text in
            Set(text.split(separator: ",").compactMap { Self(rawValue: String($0)) })
        } ?? known
}

struct SpeakerComplaint: Error, CustomStringConvertible {
    var finding: SpeakerFinding
    var text: String
    var description: String { "\(finding): \(text)" }
}

/// The merge of a word with what is in force, as it may be. Where the design leaves a choice, either outcome is right.
enum SpeakerModel {
    /// - Parameters:
    ///   - before: nil for a new task.
    ///   - failed: true if the word was refused.
    ///   - digestOfList: true if the digest in force is that of a server's list.
    ///   - renews: true if the word is the same list of the owner that the digest in force is of.
    /// - Returns: what is wrong.
    static func judge(
        _ before: InForce?, _ speaker: Speaker, _ said: InForce, _ after: InForce, failed: Bool,
        digestOfList: Bool = false, renews: Bool = false
    ) -> [SpeakerComplaint] {
        if failed, let before {
            return after == before ? [] : [.init(finding: .lostWord, text: "refused, and yet \(before) is \(after)")]
        }
        var complaints: [SpeakerComplaint] = []
        func complain(_ finding: SpeakerFinding, _ name: String, _ old: String?, _ new: String?) {
            complaints.append(
                .init(finding: finding, text: "\(name) of \(speaker): \(old ?? "-") became \(new ?? "-")"))
        }
        digest(before?.digest, speaker, said.digest, after.digest, ofList: digestOfList, renews).map {
            complain($0, "digest", before?.digest, after.digest)
        }
        for name in Set(after.orders.keys).union(said.orders.keys).union(before?.orders.keys ?? [:].keys).sorted() {
            let (old, new) = (before?.orders[name], after.orders[name])
            order(before, name, speaker, said.orders[name], new).map { complain($0, name, old, new) }
        }
        let priorities =
            switch speaker {
            case .command, .server: [before?.priority ?? 0, 0]
            case .call: [said.priority == 0 ? before?.priority ?? 0 : said.priority]
            }
        if before != nil, !priorities.contains(after.priority) {
            complain(.lostWord, "priority", before.map { "\($0.priority)" }, "\(after.priority)")
        }
        return complaints
    }

    private static func digest(
        _ old: String?, _ speaker: Speaker, _ said: String?, _ new: String?, ofList: Bool, _ renews: Bool
    ) -> SpeakerFinding? {
        if new == old, old != nil || said == nil { return nil }
        switch speaker {
        // Another digest than the known one is refused, and never stored in silence.
        case .command, .call: return new == said && said != nil && (old == nil || renews) ? nil : .lostWord
        case .server: return new == said && (old == nil || ofList) || new == old ? nil : .lostWord
        }
    }

    private static func order(
        _ before: InForce?, _ name: String, _ speaker: Speaker, _ said: String?, _ new: String?
    ) -> SpeakerFinding? {
        let old = before?.orders[name]
        switch speaker {
        case .command: return new == said ? nil : new == old && said == nil ? .staleWord : .lostWord
        case .call: return new == old && (old != nil || said == nil) || new == said && said != nil ? nil : .lostWord
        case .server:
            return new == nil || new == old ? nil : .listOrders
        }
    }
}
