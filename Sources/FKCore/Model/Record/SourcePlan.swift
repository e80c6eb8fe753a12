import FKMiddleware

/// The addresses of a task's file, in the order of its attempts: its own URL or the address in its place, its mirrors, and the
/// mirrors that a server has offered.
///
/// | address | header fields of the task that it gets |
/// | --- | --- |
/// | of the origin that the secrets were given for: that of the task's URL, or of the list's that the owner has named | all |
/// | a mirror of another origin | those without secrets, and those that the task's list gave for all addresses of its entry |
/// | a new address, or that of a host's mirror, of another origin | those without secrets |
/// | offered by a server, of another origin | none |
package struct SourcePlan: Sendable, Hashable {
    /// The maximum number of mirrors that servers may offer for a file.
    package static let maxOffered = 8
    /// The maximum number of mirrors that may deliver beside an address in one attempt, and of those that are compared with an
    /// offered one. No attempt walks a longer plan.
    static let maxBeside = 256

    let own: String
    let mirrors: [String]
    /// The mirrors that servers have offered.
    package let offered: [String]

    /// Creates a plan; by default of one address.
    package init(own: String, mirrors: [String] = [], offered: [String] = []) {
        self.own = own
        self.mirrors = mirrors
        self.offered = offered
    }

    /// The number of addresses, at least 1.
    @inline(__always)
    package var count: Int { 1 + mirrors.count + offered.count }

    /// An address, by its position in 0..<`count`.
    @inline(__always)
    package subscript(index: Int) -> String {
        if index == 0 { return own }
        return index <= mirrors.count ? mirrors[index - 1] : offered[index - 1 - mirrors.count]
    }

    /// The addresses that may deliver beside one of them: all, or in a long plan those that follow it, and the offered ones.
    /// Some may be repeated.
    package func beside(_ index: Int) -> [String] {
        guard mirrors.count > Self.maxBeside else { return [own] + mirrors + offered }
        return (1...Self.maxBeside).map { self[(index + $0) % count] } + offered
    }

    /// True for a mirror that a server has offered.
    package func isOffered(_ url: String) -> Bool { offered.contains(url) && url != own && !mirrors.contains(url) }
}

extension TaskRecord {
    /// The addresses of the file.
    package var plan: SourcePlan {
        SourcePlan(own: link ?? task.url, mirrors: task.mirrors, offered: offered ?? [])
    }

    /// The number of addresses. Nothing of the plan is copied, as in `address`.
    package var planCount: Int { 1 + own.task.mirrors.count + (own.offered?.count ?? 0) }

    /// An address of the plan, by its position.
    package func address(_ index: Int) -> String { index == 0 ? own.link ?? own.task.url : plan[index % planCount] }

    /// The mirrors join the plan, up to `SourcePlan.maxOffered`.
    package mutating func offer(_ urls: [String]) {
        guard !urls.isEmpty, offered?.count ?? 0 < SourcePlan.maxOffered else { return }
        var known = Set(plan.beside(0))
        for url in urls where offered?.count ?? 0 < SourcePlan.maxOffered && known.insert(url).inserted {
            setOffered((offered ?? []) + [url])
        }
    }

    /// The values of the task's own secrets, which no message of it may show; empty for most tasks.
    package var secretBook: SecretBook {
        var values: Set<String> = []
        for url in [task.url, own.link].compactMap(\.self) + task.mirrors.prefix(SourcePlan.maxBeside) + (offered ?? [])
        {
            values.formUnion(SecretBook.values(ofURL: url))
        }
        if task.hasOptions {
            let options = task.options
            let marked = Set((options.secretHeaders ?? []).map { $0.lowercased() })
            values.formUnion(HeaderField.secretValues(of: options.headers ?? [], marked: marked))
            if let proxy = options.proxy { values.formUnion(SecretBook.values(ofProxy: proxy)) }
        }
        return SecretBook(values)
    }

    /// The last error for display. Records of earlier versions may quote a secret.
    package var shownError: DownloadError? { error.map { secretBook.mask($0) } }

    /// The header fields of the task for one of its addresses.
    ///
    /// - Parameter isOffered: true if a server has offered the address, also if it is not in the plan.
    package func headers(for url: String, isOffered: Bool = false) -> [HeaderField] {
        guard task.optionsBox?.value.headers != nil, !isStranger(url, isOffered: isOffered) else { return [] }
        return task.options.headers(for: url, of: task.url, isListed: task.names(originOf: url))
    }

    /// The secrets of the task that an address does not receive, in words; nil if there are none.
    package func secretsLeftBehind(by url: String) -> String? {
        guard URLOrigin(url) != task.secretOrigin else { return nil }
        let options = task.options
        let marked = Set((options.secretHeaders ?? []).map { $0.lowercased() })
        var kinds: [String] = []
        if options.headers?.contains(where: { HeaderField.isSecret($0.name) || marked.contains($0.name.lowercased()) })
            == true
        {
            kinds.append("secret header fields")
        }
        if options.netrc == true { kinds.append("the login of ~/.netrc") }
        if options.cookiePath != nil { kinds.append("cookies") }
        if options.awsSignature != nil { kinds.append("signatures") }
        if task.url.urlLogin != nil { kinds.append("the login of its URL") }
        guard let last = kinds.popLast() else { return nil }
        let list = kinds.isEmpty ? last : "\(kinds.joined(separator: ", ")) and \(last)"
        return "this origin does not receive \(list) of the task: write a login into the new URL if it needs one"
    }

    /// True for an address of another origin than the task's URL that a server has offered: it gets nothing of the task.
    package func isStranger(_ url: String, isOffered: Bool = false) -> Bool {
        (isOffered || plan.isOffered(url)) && URLOrigin(url) != URLOrigin(task.url)
    }
}
