import FKMiddleware

/// The one place where the words of a request meet those that a known task has: a second call, a second command, a list imported
/// again.
///
/// | field | known | asked | then |
/// | --- | --- | --- | --- |
/// | any | any | not named | kept; an order of a command is removed (`TaskWords`) |
/// | any | not there | named | added |
/// | any | the same | named | kept |
/// | a fact that is no digest, an order | another | named | replaced |
/// | a digest of the file or of its pieces | another | named | conflict; replaced if a new version is asked for, or if the finished file has it |
/// | a digest | any | `TaskWords.dropsDigests` | removed |
package enum MergeOutcome: Sendable, Hashable, CaseIterable {
    /// The known value stays.
    case kept
    /// There was none before.
    case added
    /// The new value is stored in place of another.
    case replaced
    /// There is none any more.
    case removed
    /// Both cannot be: nothing is stored.
    case conflict
}

/// What can be said about a file by anybody who knows it.
package struct TaskFacts: Sendable, Hashable {
    /// The digest of the whole file.
    package var checksum: Checksum?
    package var pieces: PieceDigests?
    /// The signature of the whole file.
    package var signature: FileSignature?
    /// The length in bytes.
    package var size: Int64?
    /// Other addresses of the file; nil if none are named.
    package var mirrors: [String]?
    /// The list that gave `checksum` or `pieces`.
    package var list: ListOrigin?
    /// The entity tag at the task's own URL.
    package var entityTag: String?

    package init() {}

    /// What another digest than the known one means.
    package enum OtherDigest: Sendable, Hashable, CaseIterable {
        /// Two versions of the file: a conflict.
        case conflicts
        /// A new version was asked for.
        case replaces
        /// The finished file was compared and has it. Of two algorithms, the stronger one stays.
        case isProven
    }

    /// What becomes of each field, by its name.
    package func outcomes(
        with asked: TaskFacts, drops: Bool = false, other: OtherDigest = .conflicts
    ) -> [String: MergeOutcome] {
        [
            "checksum": Self.outcome(checksum, asked.checksum, drops: drops, other: other),
            "pieces": Self.outcome(pieces?.summary, asked.pieces?.summary, drops: drops, other: other),
            "signature": Self.outcome(signature, asked.signature), "size": Self.outcome(size, asked.size),
            "mirrors": Self.outcome(mirrors, asked.mirrors),
            "list": Self.outcome(list, asked.list, drops: drops, other: .replaces),
            "entityTag": Self.outcome(entityTag, asked.entityTag, drops: drops, other: .replaces),
        ]
    }

    /// The facts after a request.
    ///
    /// - Parameters:
    ///   - drops: true takes the digests away.
    ///   - other: what another digest means.
    /// - Throws: `.checksumMismatch` with both digests for a conflict.
    package func joined(
        with asked: TaskFacts, drops: Bool = false, other: OtherDigest = .conflicts
    ) throws(DownloadError) -> TaskFacts {
        let outcomes = outcomes(with: asked, drops: drops, other: other)
        if outcomes["checksum"] == .conflict, let checksum, let new = asked.checksum {
            throw Self.conflict("\(checksum)", "\(new)")
        }
        if outcomes["pieces"] == .conflict, let pieces, let new = asked.pieces, !isSameFile(asked) {
            throw Self.conflict(pieces.shown, new.shown)
        }
        var facts = self
        func join<Value>(_ name: String, _ field: WritableKeyPath<TaskFacts, Value?>) {
            switch outcomes[name] {
            case .added, .replaced: facts[keyPath: field] = asked[keyPath: field]
            case .removed: facts[keyPath: field] = nil
            default: break
            }
        }
        join("checksum", \.checksum)
        join("pieces", \.pieces)
        join("signature", \.signature)
        join("size", \.size)
        join("mirrors", \.mirrors)
        join("list", \.list)
        join("entityTag", \.entityTag)
        // Other pieces of the same file.
        if outcomes["pieces"] == .conflict { facts.pieces = asked.pieces }
        if other == .isProven, let checksum, checksum.isStronger(than: facts.checksum) { facts.checksum = checksum }
        return facts
    }

    /// True if a digest of the whole file says that both are the same version.
    private func isSameFile(_ asked: TaskFacts) -> Bool { checksum != nil && checksum == asked.checksum }

    private static func outcome<Value: Equatable>(
        _ known: Value?, _ asked: Value?, drops: Bool = false, other: OtherDigest = .replaces
    ) -> MergeOutcome {
        if drops, known != nil { return .removed }
        guard let asked else { return .kept }
        guard let known else { return .added }
        if known == asked { return .kept }
        return other == .conflicts ? .conflict : .replaced
    }

    private static func conflict(_ known: String, _ asked: String) -> DownloadError {
        DownloadError(
            .checksumMismatch,
            "The task's file has to have \(known), and now it is asked for with \(asked). Nothing was changed. If the file is "
                + "another one now, trash the task and add it again.", remedy: .dropDigest)
    }
}

/// What only the owner says: how a file is fetched and where it goes. Folder and name are the task's identity, and attributes are
/// added one by one.
package struct TaskOrders: Sendable, Hashable {
    /// The options; their facts are ignored.
    package var options: TaskOptions
    /// Whether the task continues by itself; nil if it is not named.
    package var type: DownloadType?
    /// The priority; nil if it is not named.
    package var priority: Int?

    package init(options: TaskOptions = TaskOptions(), type: DownloadType? = nil, priority: Int? = nil) {
        self.options = options
        self.type = type
        self.priority = priority
    }

    /// How fields meet.
    package enum Rule: Sendable, Hashable, CaseIterable {
        /// What is named is taken, and the rest stays.
        case takesNamed
        /// What is named fills gaps, and the rest stays.
        case fillsGaps
        /// Everything is taken: what is not named is removed.
        case takesAll
    }

    /// The orders after a request.
    package func joined(with asked: TaskOrders, _ rule: Rule) -> TaskOrders {
        var orders = self
        if rule == .takesAll {
            orders.type = asked.type ?? .background
            orders.priority = asked.priority ?? 0
        } else {
            orders.type = asked.type ?? type
            orders.priority = asked.priority ?? priority
        }
        guard options != asked.options else { return orders }
        var asked = asked.options
        // Secrets of one set of options have one origin: those of another are dropped, and never sent to it.
        if asked.secretOrigin != options.secretOrigin, asked.hasSecrets || rule == .takesAll {
            if rule == .fillsGaps, options.hasSecrets {
                asked.dropSecrets()
            } else {
                orders.options.dropSecrets()
                orders.options.secretOrigin = asked.secretOrigin
            }
        }
        // A call adds header fields and replaces those of the same names.
        if rule == .takesNamed { asked.keepHeaders(of: orders.options) }
        for field in TaskOptions.orders { field.join(&orders.options, asked, rule) }
        return orders
    }
}

extension TaskOptions {
    /// An option that is an order.
    package struct Order: Sendable {
        /// The name of its stored property.
        package let name: String
        /// What becomes of it.
        package let outcome: @Sendable (_ known: TaskOptions, _ asked: TaskOptions, TaskOrders.Rule) -> MergeOutcome
        private let take: @Sendable (inout TaskOptions, TaskOptions) -> Void

        fileprivate init<Value: Equatable & Sendable>(
            _ name: String, _ path: any WritableKeyPath<TaskOptions, Value?> & Sendable
        ) {
            self.name = name
            outcome = { known, asked, rule in
                let (old, new) = (known[keyPath: path], asked[keyPath: path])
                if old == new { return .kept }
                if new == nil { return rule == .takesAll ? .removed : .kept }
                return old == nil ? .added : rule == .fillsGaps ? .kept : .replaced
            }
            take = { $0[keyPath: path] = $1[keyPath: path] }
        }

        fileprivate func join(_ known: inout TaskOptions, _ asked: TaskOptions, _ rule: TaskOrders.Rule) {
            if outcome(known, asked, rule) != .kept { take(&known, asked) }
        }
    }

    /// The options that are facts, by the names of their stored properties.
    package static let factNames: Set<String> = ["checksum", "pieces", "signature", "size", "list", "entityTag"]

    /// The options that are orders: all others.
    package static let orders: [Order] = [
        Order("headers", \.headerSet), Order("maxSize", \.maxSize), Order("expectedType", \.expectedType),
        Order("minFree", \.minFree), Order("connections", \.connections), Order("mirrorPolicy", \.mirrorPolicy),
        Order("rateLimit", \.rateLimit), Order("maxAttempts", \.maxAttempts), Order("deadline", \.deadline),
        Order("pinnedPublicKey", \.pinnedPublicKey), Order("insecure", \.insecure), Order("proxy", \.proxy),
        Order("netrc", \.netrc), Order("existing", \.existing), Order("reuse", \.reuse),
        Order("httpVersion", \.httpVersion), Order("dnsServers", \.dnsServers), Order("dohURL", \.dohURL),
        Order("awsSignature", \.awsSignature), Order("noPrivate", \.noPrivate),
        Order("clientCertificate", \.clientCertificate), Order("addressFamily", \.addressFamily),
        Order("interface", \.interface), Order("hostAddresses", \.hostAddresses),
        Order("remoteTime", \.remoteTime), Order("loginHost", \.loginHost), Order("adoptPath", \.adoptPath),
        Order("caPath", \.caPath), Order("cookiePath", \.cookiePath),
        Order("timeoutSeconds", \.timeoutSeconds), Order("stallSeconds", \.stallSeconds),
        Order("runSeconds", \.runSeconds),
    ]

    /// Header fields and whom they are for. They are one order: a field must not meet the permission that another one had.
    private var headerSet: HeaderSet? {
        get {
            headers.map { HeaderSet(fields: $0, secret: secretHeaders, list: listHeaders) }
        }
        set { (headers, secretHeaders, listHeaders) = (newValue?.fields, newValue?.secret, newValue?.list) }
    }

    /// The stored properties of `headerSet`, and `secretOrigin`, which goes with the secrets.
    package static let headerNames: Set<String> = ["headers", "secretHeaders", "listHeaders", "secretOrigin"]

    /// True if an option holds or names a secret.
    fileprivate var hasSecrets: Bool {
        headers != nil || netrc == true || cookiePath != nil || awsSignature != nil || clientCertificate != nil
            || loginHost != nil
    }

    fileprivate mutating func dropSecrets() {
        (headerSet, netrc, cookiePath, awsSignature, clientCertificate, secretOrigin) = (nil, nil, nil, nil, nil, nil)
        loginHost = nil
    }

    /// Adds the header fields of other options whose names these options do not have.
    fileprivate mutating func keepHeaders(of known: TaskOptions) {
        guard let asked = headerSet, let old = known.headerSet else { return }
        let names = Set(asked.fields.map { $0.name.lowercased() })
        func isKept(_ name: String) -> Bool { !names.contains(name.lowercased()) }
        func joined(_ old: [String]?, _ asked: [String]?) -> [String]? {
            let all = (old ?? []).filter(isKept) + (asked ?? [])
            return all.isEmpty ? nil : all
        }
        headerSet = HeaderSet(
            fields: old.fields.filter { isKept($0.name) } + asked.fields, secret: joined(old.secret, asked.secret),
            list: joined(old.list, asked.list))
    }

    private struct HeaderSet: Equatable, Sendable {
        var fields: [HeaderField]
        var secret: [String]?
        var list: [String]?
    }
}

extension TaskDescription {
    package var facts: TaskFacts {
        get {
            var facts = TaskFacts()
            facts.mirrors = mirrors.isEmpty && !words.contains(.namesMirrors) ? nil : mirrors
            guard hasOptions else { return facts }
            let options = options
            (facts.checksum, facts.pieces, facts.signature) = (options.checksum, options.pieces, options.signature)
            (facts.size, facts.list, facts.entityTag) = (options.size, options.list, options.entityTag)
            return facts
        }
        set {
            mirrors = newValue.mirrors ?? []
            var options = options
            (options.checksum, options.pieces) = (newValue.checksum, newValue.pieces)
            options.signature = newValue.signature
            (options.size, options.list, options.entityTag) = (newValue.size, newValue.list, newValue.entityTag)
            self.options = options
        }
    }

    /// The orders that this description names.
    package var orders: TaskOrders {
        TaskOrders(
            options: options, type: type != .background || words.contains(.namesType) ? type : nil,
            priority: priority != 0 || words.contains(.namesPriority) ? priority : nil)
    }

    /// True if a request may replace the digests of this task by others: they came from a list, and the request is that list again, or is
    /// made by a list that takes its place. The word of a signed list is replaced by one of the same signer alone.
    package func isNewVersion(_ asked: TaskDescription) -> Bool {
        guard let list = optionsBox?.value.list, let new = asked.optionsBox?.value.list,
            list.signer == nil || list.signer == new.signer
        else { return false }
        return asked.words.contains(.isNewVersion)
            || list.name.isExactly(new.name) && !list.name.isExactly(ListOrigin.pipe)
    }

    /// This description of a known task, joined with that of a request. Identity, name and attributes stay.
    ///
    /// - Parameter isProven: true if the finished file has the digests of the request.
    /// - Throws: `.checksumMismatch` for another digest than the known one.
    package func joined(with asked: TaskDescription, isProven: Bool = false) throws(DownloadError) -> TaskDescription {
        let rule: TaskOrders.Rule =
            !asked.words.contains(.keepsOrders)
            ? .takesAll : asked.words.contains(.fillsOptions) ? .fillsGaps : .takesNamed
        let facts = try facts.joined(
            with: asked.facts, drops: asked.words.contains(.dropsDigests),
            other: isNewVersion(asked) ? .replaces : isProven ? .isProven : .conflicts)
        let known = TaskOrders(options: options, type: type, priority: priority)
        let orders = known.joined(with: asked.orders, rule)
        var task = self
        task.options = orders.options
        task.type = orders.type ?? .background
        task.priority = orders.priority ?? 0
        task.facts = facts
        task.limitListHeaders(of: self, asked)
        return task
    }
}

extension TaskDescription {
    private var origins: Set<URLOrigin> { Set(([url] + mirrors).compactMap { URLOrigin($0) }) }

    /// True if an address of the description has the origin of this one.
    package func names(originOf address: String) -> Bool {
        guard let origin = URLOrigin(address) else { return false }
        return URLOrigin(url) == origin || mirrors.contains { URLOrigin($0) == origin }
    }

    /// A list gives header fields for the addresses of its entry. A mirror that another word has named does not get secret ones.
    fileprivate mutating func limitListHeaders(of known: TaskDescription, _ asked: TaskDescription) {
        guard hasOptions, let names = options.listHeaders, !names.isEmpty else { return }
        let all = origins
        let isCovered = (known: known.origins.isSuperset(of: all), asked: asked.origins.isSuperset(of: all))
        if isCovered.known, isCovered.asked { return }
        let isOfAsked = asked.optionsBox?.value.headers == options.headers
        let newNames = Set((asked.optionsBox?.value.headers ?? []).map { $0.name.lowercased() })
        let isOfKnown = known.optionsBox?.value.headers == options.headers
        let kept = names.filter { name in
            let isNew = isOfAsked || !isOfKnown && newNames.contains(name)
            return isNew ? isCovered.asked : isCovered.known
        }
        options.listHeaders = kept.isEmpty ? nil : kept
    }
}

extension PieceDigests {
    /// A line that tells these digests from others.
    fileprivate var shown: String { "\(count) \(algorithm.rawValue) digests of pieces (\(Self.hex(crc32c)))" }

    private static func hex(_ number: UInt32) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

extension Checksum {
    /// True if forging a file with this digest is harder than with the other one.
    fileprivate func isStronger(than other: Checksum?) -> Bool {
        guard let other, other.algorithm != algorithm else { return false }
        func strength(_ algorithm: Algorithm) -> Int { algorithm.isDigest ? algorithm.byteCount : 0 }
        return strength(algorithm) >= strength(other.algorithm)
    }
}
