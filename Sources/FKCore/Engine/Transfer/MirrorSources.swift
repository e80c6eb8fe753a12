import FKMiddleware

/// The URLs that the connections of one file are distributed over: the URL of the attempt and its mirrors.
///
/// ```text
/// untried -> on trial -> proven | refused
///     ^________|  (nothing could be compared yet)
/// ```
///
/// A mirror gets connections only after a trial (`MirrorTrial`) has shown that its file is the same. Until every
/// mirror is proven or refused, no source gets more than its share of connections, because they would have to be
/// taken away again.
struct MirrorSources: Sendable {
    enum Status: Sendable, Hashable {
        case untried
        case onTrial
        /// The mirror's own validator, for its range requests.
        case proven(Validator)
        case refused
    }

    /// The number of trials of one mirror that may end without a verdict.
    static let maxTrials = 5

    private(set) var mirrors: [(url: String, status: Status, trials: Int)]
    /// The mirrors that the server has offered. They are not the task's own and get no secrets.
    private var offered: [String] = []

    /// Creates the list of sources.
    ///
    /// - Parameters:
    ///   - own: the URL of the attempt.
    ///   - plan: the task's URL and its mirrors; URLs may be repeated.
    ///   - offered: those of the plan that servers have offered; the default is none.
    init(own: String, plan: [String], offered: [String] = []) {
        mirrors = []
        self.offered = offered
        var known: Set = [own]
        for url in plan where known.insert(url).inserted { mirrors.append((url, .untried, 0)) }
    }

    /// Adds a mirror that the server has offered, unless it is known.
    ///
    /// - Parameter own: the URL of the attempt.
    mutating func offer(_ url: String, own: String) {
        guard offered.count < SourcePlan.maxOffered, url != own, !mirrors.contains(where: { $0.url == url }) else {
            return
        }
        mirrors.append((url, .untried, 0))
        offered.append(url)
    }

    /// True for a mirror that the server has offered.
    func isOffered(_ url: String) -> Bool { offered.contains(url) }

    /// True if some mirror may still become usable.
    var isUndecided: Bool { mirrors.contains { $0.status == .untried || $0.status == .onTrial } }

    /// The mirrors that were not refused, in order.
    var usable: [String] { mirrors.filter { $0.status != .refused }.map(\.url) }

    func validator(of url: String) -> Validator? {
        guard case .proven(let validator) = mirrors.first(where: { $0.url == url })?.status else { return nil }
        return validator
    }

    /// The source of the next connection.
    ///
    /// - Parameters:
    ///   - limit: the number of connections the file may have.
    ///   - connections: returns the number of connections of a source; nil is the attempt's own URL.
    ///   - isOpen: returns whether a source may get another connection.
    /// - Returns: `.some(nil)` for the attempt's own URL; nil if no source may get another connection.
    func next(limit: Int, connections: (String?) -> Int, isOpen: (String?) -> Bool) -> String?? {
        let possible = mirrors.count { $0.status != .refused }
        let share = isUndecided ? (limit + possible) / (possible + 1) : limit
        let proven = mirrors.lazy.filter {
            guard case .proven = $0.status else { return false }
            return true
        }
        let sources: [String?] = [nil] + proven.map(\.url)
        return sources.filter { connections($0) < share && isOpen($0) }.min { connections($0) < connections($1) }
    }

    /// Chooses the next mirror to try and marks it as on trial.
    mutating func startTrial(isOpen: (String) -> Bool) -> String? {
        guard let index = mirrors.firstIndex(where: { $0.status == .untried && isOpen($0.url) }) else { return nil }
        mirrors[index].status = .onTrial
        mirrors[index].trials += 1
        return mirrors[index].url
    }

    mutating func prove(_ url: String, by validator: Validator) { set(url, .proven(validator)) }

    mutating func refuse(_ url: String) { set(url, .refused) }

    /// The trial had no verdict. Another one follows, up to `maxTrials`.
    mutating func postpone(_ url: String) {
        guard let mirror = mirrors.first(where: { $0.url == url }) else { return }
        set(url, mirror.trials < Self.maxTrials ? .untried : .refused)
    }

    private mutating func set(_ url: String, _ status: Status) {
        guard let index = mirrors.firstIndex(where: { $0.url == url }) else { return }
        mirrors[index].status = status
    }
}
