import FKCore
import FKMiddleware
import Foundation

/// What a page shows at the moment.
struct PageView: Sendable {
    static let maxTasks = 500

    var ids: [TaskID]
    /// The least time between two notifications.
    var interval: Duration
    var next = ContinuousClock.now
    var revision: UInt64
    /// The rows as they were sent, by their changing values.
    var sent: [TaskID: Int] = [:]
    var bytesPerSecond: Int64 = -1
    /// The seconds of silence of the process that runs the downloads; nil unless it counts as silent.
    var silence: Int?
}

/// `fk.subscribe` and `fk.onChange`.
extension RPCService {
    func subscribe(_ call: PageCall, _ peer: RPCPeer?) async throws(RPCError) -> JSON {
        guard let peer, peers[peer] != nil else { throw RPCError("fk.subscribe works over a WebSocket only.") }
        if try call.truth("off") {
            peers[peer]?.view = nil
        } else {
            let names = try call.texts("ids") ?? []
            guard names.count <= PageView.maxTasks else {
                throw RPCError("fk.subscribe takes at most \(PageView.maxTasks) ids.")
            }
            var ids: [TaskID] = []
            // A task may have gone since the page asked for the list.
            for name in names { if let row = try? row(named: name) { ids.append(row.id) } }
            let interval = try call.number("interval", in: 0.25...60, or: 0.5)
            peers[peer]?.view = PageView(ids: ids, interval: .seconds(interval), revision: table.revision)
        }
        return await status()
    }

    /// Tells pages what has changed in view.
    func tellViews() async {
        guard peers.values.contains(where: { $0.view != nil }) else { return }
        let sums = await sums()
        let now = ContinuousClock.now
        for (peer, state) in peers {
            guard var view = state.view, now >= view.next else { continue }
            var rows: [JSON] = []
            for id in view.ids {
                guard let row = table.rows[id] else { continue }
                let print = row.fingerprint
                if view.sent.updateValue(print, forKey: id) != print { rows.append(.object(PageDocuments.row(row))) }
            }
            let rate = table.bytesPerSecond
            let isListChanged = table.revision != view.revision
            let silence = engineWatch.isSilent ? Int(engineWatch.silence(EngineWatch.now)) : nil
            if isListChanged || !rows.isEmpty || rate != view.bytesPerSecond || silence != view.silence {
                view.silence = silence
                view.revision = table.revision
                view.bytesPerSecond = rate
                view.next = now + view.interval
                let document = JSON.object(
                    sums + [.init("listChanged", .bool(isListChanged)), .init("tasks", .array(rows))])
                peer.send(
                    JSON.members(["jsonrpc": "2.0", "method": "fk.onChange", "params": .array([document])]).bytes)
            }
            if peers[peer]?.view != nil { peers[peer]?.view = view }
        }
    }
}

extension TaskRow {
    /// A number that changes with what a page shows.
    fileprivate var fingerprint: Int {
        var hasher = Hasher()
        hasher.combine(state)
        hasher.combine(received)
        hasher.combine(expected)
        hasher.combine(bytesPerSecond)
        hasher.combine(attempts)
        hasher.combine(name)
        hasher.combine(waiting)
        hasher.combine(barrels)
        return hasher.finalize()
    }
}
