import FKEngine
import FKMiddleware
import Foundation
import Observation

/// All tasks of a downloader for a view: rows, totals and failures, on the main actor.
///
/// ```swift
/// struct Downloads: View {
///     let model: DownloadsModel
///     var body: some View {
///         List(model.rows, id: \.id) { row in Text(row.fileName ?? row.url) }
///         if !model.failures.isEmpty { Button("Retry all", action: model.retryAll) }
///     }
/// }
/// ```
///
/// It follows the tasks until the model is released. Rows change when a task changes its state; a view makes a `TaskModel` for the rows it
/// shows to follow their bytes. `total` changes at every `Configure.progressInterval`. It works with SwiftUI and with everything else that uses
/// `Observation`.
@MainActor
@Observable
public final class DownloadsModel {
    /// The order of `rows`.
    public enum Order: Sendable, Hashable, CaseIterable {
        /// As the tasks were added.
        case added
        /// By file name, ignoring case, numbers by value.
        case name
        /// Running, waiting, suspended, failed, cancelled, complete; within a state as they were added.
        case state
    }

    /// The downloader that the model follows.
    public nonisolated let downloader: Downloader
    /// The tasks in the order of `order`.
    public private(set) var rows: [DownloadInfo] = []
    /// The sum over all tasks; nil until the first one.
    public private(set) var total: BarrelInfo?
    /// The failed tasks with their errors, in the order of `rows`.
    public var failures: [DownloadInfo] { rows.filter { $0.state == .error } }
    /// The order of `rows`. The default is `.added`.
    public var order: Order { didSet { if order != oldValue { arrange() } } }
    /// The error of the last verb of this model; nil if it was accepted.
    public private(set) var verbError: DownloadError?

    /// The tasks as they were added.
    @ObservationIgnored private var ids: [TaskID] = []
    @ObservationIgnored private var infos: [TaskID: DownloadInfo] = [:]
    /// The names that URLs give. Parsing a URL for each comparison would be slow.
    @ObservationIgnored private var urlNames: [TaskID: String] = [:]
    @ObservationIgnored private var following: Task<Void, Never>?
    @ObservationIgnored private var summing: Task<Void, Never>?
    /// The last verb. The next one waits for it.
    @ObservationIgnored private var lastVerb: Task<Void, Never>?

    /// Creates a model, which follows the tasks from now on.
    public init(_ downloader: Downloader, order: Order = .added) {
        self.downloader = downloader
        self.order = order
        summing = Task { [weak self] in
            for await sum in downloader.progress { self?.total = sum }
        }
        let feed = downloader.feed()
        following = Task { [weak self] in
            for await report in feed {
                guard let self else { break }
                self.show(report)
            }
        }
    }

    deinit {
        following?.cancel()
        summing?.cancel()
    }

    private func show(_ report: TaskFeed.Element) {
        switch report {
        case .all(let all):
            ids = all.map(\.id)
            infos = Dictionary(all.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
            urlNames = [:]
            arrange()
        case .changed(let changes):
            var movesRows = false
            for info in changes {
                let old = infos[info.id]
                if old == nil, info.state != .unknown { ids.append(info.id) }
                infos[info.id] = info.state == .unknown ? nil : info
                if info.state == .unknown { urlNames[info.id] = nil }
                movesRows = movesRows || isMoved(old, info)
            }
            guard movesRows else {
                rows = rows.map { infos[$0.id] ?? $0 }
                return
            }
            ids.removeAll { infos[$0] == nil }
            arrange()
        case .progress: return
        }
    }

    /// True if the task has another place in `rows`, a new one, or none any more.
    private func isMoved(_ old: DownloadInfo?, _ new: DownloadInfo) -> Bool {
        guard let old, new.state != .unknown else { return true }
        return switch order {
        case .added: false
        case .name: name(of: old) != name(of: new)
        case .state: old.state != new.state
        }
    }

    /// Same as `DownloadInfo.fileName`, with the name from the URL computed once.
    private func name(of info: DownloadInfo) -> String {
        if let name = info.knownName ?? urlNames[info.id] { return name }
        let name = info.fileName ?? ""
        urlNames[info.id] = name
        return name
    }

    private func arrange() {
        let added = ids.compactMap { infos[$0] }
        switch order {
        case .added: rows = added
        case .name:
            let named = added.map { (name: name(of: $0), info: $0) }
            let sorted = named.sorted {
                $0.name.compare($1.name, options: [.caseInsensitive, .numeric]) == .orderedAscending
            }
            rows = sorted.map { $0.info }
        case .state:
            let order: [DownloadState] = [.action, .idle, .suspend, .error, .cancel, .complete]
            let groups = Dictionary(grouping: added, by: \.state)
            rows = order.flatMap { groups[$0] ?? [] }
        }
    }

    // MARK: Verbs

    /// Queues all failed tasks again. It returns at once; `rows` and `verbError` show the result. Verbs take effect in order.
    public func retryAll() {
        guard !failures.isEmpty else { return }
        lastVerb = Task { [weak self, downloader, lastVerb] in
            await lastVerb?.value
            do throws(DownloadError) {
                try await downloader.control.retry(.state(.error))
                self?.verbError = nil
            } catch {
                self?.verbError = error
            }
        }
    }
}
