import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// aria2's methods that ask.
extension RPCService {
    /// The methods, in the order of aria2's list.
    static let methods = [
        "aria2.addUri", "aria2.getPeers", "aria2.addMetalink", "aria2.remove", "aria2.pause", "aria2.forcePause",
        "aria2.pauseAll", "aria2.forcePauseAll", "aria2.unpause", "aria2.unpauseAll", "aria2.forceRemove",
        "aria2.changePosition", "aria2.tellStatus", "aria2.getUris", "aria2.getFiles", "aria2.getServers",
        "aria2.tellActive", "aria2.tellWaiting", "aria2.tellStopped", "aria2.getOption", "aria2.changeUri",
        "aria2.changeOption", "aria2.getGlobalOption", "aria2.changeGlobalOption", "aria2.purgeDownloadResult",
        "aria2.removeDownloadResult", "aria2.getVersion", "aria2.getSessionInfo", "aria2.shutdown",
        "aria2.forceShutdown", "aria2.getGlobalStat", "aria2.saveSession", "system.multicall", "system.listMethods",
        "system.listNotifications",
    ]

    /// The methods that need no secret and return constants.
    static let lists: [String: JSON] = [
        "system.listMethods": .array((methods + pageMethods).map { .string($0) }),
        "system.listNotifications": JSON(notifications.map { "aria2.onDownload\($0.value)" }),
    ]

    /// True for a method that changes nothing.
    static func isAsking(_ method: String) -> Bool {
        method.hasPrefix("aria2.tell") || method.hasPrefix("aria2.get")
            || ["fk.status", "fk.barrels", "fk.tasks", "fk.task", "fk.rates", "fk.middlewares", "fk.job", "fk.jobs"]
                .contains(method)
    }

    func aria2(_ method: String, _ params: Parameters) async throws(RPCError) -> JSON {
        switch method {
        case "aria2.tellStatus": return try tellStatus(params)
        case "aria2.tellActive": return try list(.active, 0, Int.max, params, keys: 0)
        case "aria2.tellWaiting":
            return try list(.waiting, params.integer(0), params.integer(1, atLeast: 0), params, keys: 2)
        case "aria2.tellStopped":
            return try list(.stopped, params.integer(0), params.integer(1, atLeast: 0), params, keys: 2)
        case "aria2.getUris":
            return .text(try queued(params.string(0), "No URI data is available for").text { $0.writeURIs(into: &$1) })
        case "aria2.getFiles": return .text(try row(params.string(0)).text { $0.writeFiles(into: &$1) })
        case "aria2.getServers": return try servers(params)
        case "aria2.getPeers":
            _ = try queued(params.string(0), "No peer data is available for")
            return .array([])
        case "aria2.getOption": return try await option(params)
        case "aria2.getGlobalOption": return await globalOption()
        case "aria2.getVersion":
            return .members([
                "version": .string(FKCore.Version.text),
                "enabledFeatures": .array(["GZip", "HTTPS", "Message Digest", "Metalink"].map { .string($0) }),
            ])
        case "aria2.getSessionInfo": return .members(["sessionId": .string(sessionID)])
        case "aria2.getGlobalStat": return globalStat
        default: return try await command(method, params)
        }
    }

    // MARK: Finding

    /// The row of a gid or of its beginning. The messages are aria2's.
    func row(_ gid: String) throws(RPCError) -> TaskRow {
        guard gid.utf8.count <= 16, GID.number(gid) != nil else { throw RPCError("Invalid GID \(gid)") }
        let ids = table.ids(ofGIDPrefix: gid)
        guard let id = ids.first, let row = table.rows[id] else { throw RPCError("GID \(gid) is not found") }
        guard ids.count == 1 else { throw RPCError("GID \(gid) is not unique") }
        return row
    }

    /// The row of a task that has not ended.
    ///
    /// - Parameter message: the beginning of the error for another task.
    func queued(_ gid: String, _ message: String) throws(RPCError) -> TaskRow {
        let row = try row(gid)
        guard !row.state.isEnded else { throw RPCError("\(message) GID#\(GID.text(row.gid))") }
        return row
    }

    private func tellStatus(_ params: Parameters) throws(RPCError) -> JSON {
        let row = try row(params.string(0))
        let keys = Aria2Keys(names: try params.optionalArray(1).compactMap(\.string))
        return .text(Aria2Status(row, ranges: keys.contains(.bitfield) ? ranges(of: row) : nil).bytes(keys))
    }

    /// The ranges of an unfinished file, from its record.
    private func ranges(of row: TaskRow) -> [(start: Int64, position: Int64)]? {
        guard row.state != .complete, row.received > 0, let record = try? reader.record(row.id) else { return nil }
        return record.ranges.map { ($0.start, $0.position) }
    }

    private enum Order { case active, waiting, stopped }

    private func list(
        _ order: Order, _ offset: Int, _ count: Int, _ params: Parameters, keys index: Int
    ) throws(RPCError) -> JSON {
        let keys = Aria2Keys(names: try params.optionalArray(index).compactMap(\.string))
        let ids =
            switch order {
            case .active: table.active.window(offset: offset, count: count)
            case .waiting: table.waiting.window(offset: offset, count: count)
            case .stopped: table.stopped.window(offset: offset, count: count)
            }
        try spend(rows: ids.count)
        var text = JSONText(capacity: 64 + ids.count * (keys == .all ? 640 : 256))
        text.beginArray()
        for id in ids {
            guard let row = table.rows[id] else { continue }
            let ranges = order == .active && keys.contains(.bitfield) ? ranges(of: row) : nil
            Aria2Status(row, ranges: ranges).write(keys, into: &text)
        }
        text.endArray()
        return .text(text.bytes)
    }

    /// Bounds the answer to one request.
    func spend(rows count: Int) throws(RPCError) {
        guard Self.budget.spend(rows: count) else {
            throw RPCError("The answer would have more than \(Self.maxRows) tasks: ask for fewer at once.")
        }
    }

    private func servers(_ params: Parameters) throws(RPCError) -> JSON {
        let row = try row(params.string(0))
        guard row.state == .action else { throw RPCError("No active download for GID#\(GID.text(row.gid))") }
        let urls = [row.url] + row.mirrors
        let url = urls[max(0, row.attempts - 1) % urls.count]
        let server = JSON.members([
            "uri": .string(url), "currentUri": .string(url), "downloadSpeed": .string(String(row.bytesPerSecond)),
        ])
        return .array([.members(["index": "1", "servers": .array([server])])])
    }

    private var globalStat: JSON {
        .members([
            "downloadSpeed": .string(String(table.bytesPerSecond)), "uploadSpeed": "0",
            "numActive": .string(String(table.active.count)), "numWaiting": .string(String(table.waiting.count)),
            "numStopped": .string(String(table.stopped.count)),
            "numStoppedTotal": .string(String(max(table.stopped.count, table.endedCount))),
        ])
    }
}

extension TaskRow {
    fileprivate func text(_ write: (Aria2Status, inout JSONText) -> Void) -> [UInt8] {
        var text = JSONText()
        write(Aria2Status(self), &text)
        return text.bytes
    }
}

extension Aria2Status {
    /// The object with these keys as JSON text.
    func bytes(_ keys: Aria2Keys) -> [UInt8] {
        var text = JSONText()
        write(keys, into: &text)
        return text.bytes
    }
}
