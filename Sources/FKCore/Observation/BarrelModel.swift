import FKEngine
import FKMiddleware
import Foundation
import Observation

/// A barrel for a view: its sum and its members, on the main actor.
///
/// It follows the barrel in every state until the model is released. Rows of a list make a `TaskModel` for the members
/// they show.
@MainActor
@Observable
public final class BarrelModel: Identifiable {
    /// The barrel that the model follows.
    public nonisolated let barrel: Barrel
    /// The barrel's name.
    public nonisolated var id: String { barrel.name }
    /// The latest sum; nil until the first one, and if there never was such a barrel.
    public private(set) var info: BarrelInfo?
    /// The members in the order in which they joined.
    public private(set) var members: [DownloadTask] = []
    /// The members that have failed, with their errors.
    public private(set) var failures: [DownloadInfo] = []
    /// The error of the last verb of this model; nil if it was accepted.
    public private(set) var verbError: DownloadError?

    @ObservationIgnored private var following: Task<Void, Never>?
    /// The last verb. The next one waits for it.
    @ObservationIgnored private var lastVerb: Task<Void, Never>?

    /// Creates a model, which follows the barrel from now on.
    public init(_ barrel: Barrel) {
        self.barrel = barrel
        following = Task { [weak self] in
            for await info in barrel.downloader.messager.changes(ofBarrel: barrel.name) {
                await self?.show(info, of: barrel)
            }
        }
    }

    deinit { following?.cancel() }

    private func show(_ sum: BarrelInfo, of barrel: Barrel) async {
        // While bytes arrive, members are read only if the sum shows that they have changed. A sum without new bytes may be that of
        // other members.
        if sum.states != info?.states || sum.total != info?.total || sum.count.expected != info?.count.expected
            || sum.count.received == info?.count.received
        {
            let infos = await barrel.memberInfos
            members = infos.map { DownloadTask($0.id, $0.url, in: barrel.downloader) }
            failures = infos.filter { $0.state == .error }
        }
        info = await barrel.downloader.messager.lookingForFiles(sum)
    }

    // MARK: Verbs

    /// Stops running and waiting members and keeps their bytes. Like every verb here, it returns at once; `info` and
    /// `verbError` show the result. Verbs take effect in order.
    public func suspend() { give { barrel throws(DownloadError) in try await barrel.suspend() } }

    /// Resumes suspended members, and queues failed and cancelled ones again.
    public func start() {
        give { barrel throws(DownloadError) in
            try await barrel.resume()
            try await barrel.retry()
        }
    }

    /// Stops members and deletes their unfinished bytes.
    public func cancel() { give { barrel throws(DownloadError) in try await barrel.cancel() } }

    /// Forgets all members and deletes every file they wrote.
    public func trash() { give { barrel throws(DownloadError) in try await barrel.trash() } }

    private func give(_ verb: @escaping @Sendable (Barrel) async throws(DownloadError) -> Void) {
        lastVerb = Task { [weak self, barrel, lastVerb] in
            await lastVerb?.value
            do throws(DownloadError) {
                try await verb(barrel)
                self?.verbError = nil
            } catch {
                self?.verbError = error
            }
        }
    }
}
