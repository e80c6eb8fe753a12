import FKCore
import FKManifests
import FKMiddleware
import FKPrograms
import Foundation

/// The methods of the page that ask.
extension RPCService {
    private static let targets: Set<String> = ["ids", "barrel", "all", "brief"]

    /// The methods, each with the members of its parameter, in the order of the list.
    private static let methodMembers: KeyValuePairs<String, Set<String>> = [
        "fk.status": [], "fk.barrels": [], "fk.tasks": TaskQuery.members, "fk.task": ["id"], "fk.rates": ["seconds"],
        "fk.middlewares": [],
        "fk.add": [
            "urls", "mirrors", "dir", "out", "barrel", "headers", "checksum", "rateLimit", "paused", "caFile",
            "adopt",
        ],
        "fk.import": ["text", "fileName", "dir", "barrel", "paused", "skipBad"], "fk.suspend": targets,
        "fk.resume": targets, "fk.retry": targets.union(["user", "password"]), "fk.cancel": targets,
        "fk.forget": targets, "fk.trash": targets, "fk.limit": ["rate", "barrel", "id"], "fk.relink": ["id", "url"],
        "fk.deleteBarrel": ["barrel"], "fk.settings": settingNames,
        "fk.preview": ToolCommand.members[.preview] ?? [], "fk.fetch": ToolCommand.members[.fetch] ?? [],
        "fk.sync": ToolCommand.members[.sync] ?? [], "fk.publish": ToolCommand.members[.publish] ?? [],
        "fk.job": ["id"], "fk.jobs": [], "fk.endJob": ["id"], "fk.subscribe": ["ids", "interval", "off"],
    ]

    static let pageMethods = methodMembers.map(\.key)

    func page(_ method: String, _ params: [JSON], from peer: RPCPeer?) async throws(RPCError) -> JSON {
        guard let allowed = Self.methodMembers.first(where: { $0.key == method })?.value else {
            throw .noSuchMethod(method)
        }
        let call = try PageCall(method, params, allowed: allowed)
        switch method {
        case "fk.status": return await status()
        case "fk.barrels": return try await barrels()
        case "fk.tasks": return try tasks(TaskQuery(call))
        case "fk.task": return try await details(call)
        case "fk.rates":
            let samples = rates.last(try call.integer("seconds", in: 1...RateHistory.seconds, or: 60))
            return .members(["end": JSON(Date()), "interval": 1, "samples": .array(samples.map { .integer($0) })])
        case "fk.middlewares": return try middlewares()
        case "fk.settings": return try await changeSettings(call)
        case "fk.preview", "fk.fetch", "fk.sync", "fk.publish", "fk.job", "fk.jobs", "fk.endJob":
            return try jobMethod(call)
        case "fk.subscribe": return try await subscribe(call, peer)
        default: return try await pageCommand(call)
        }
    }

    /// The row of an id, the unique beginning of one, or a gid.
    func row(named text: String) throws(RPCError) -> TaskRow {
        if let id = TaskID(hex: text.lowercased()), let row = table.rows[id] { return row }
        if GID.isWhole(text), let gid = GID.number(text), let id = table.id(ofGID: gid), let row = table.rows[id] {
            return row
        }
        let digits = text.lowercased()
        guard StoreReader.isIDPrefix(digits) else { throw RPCError("\(text.visible) is no id of a task.") }
        let found = table.rows.values.lazy.filter { $0.id.hex.hasPrefix(digits) }.prefix(2)
        guard let row = found.first else { throw RPCError("There is no task \(text).") }
        guard found.count == 1 else { throw RPCError("Several tasks begin with \(text): give more digits.") }
        return row
    }

    // MARK: Documents

    func status() async -> JSON {
        .object(
            [
                .init("version", .string(FKCore.Version.text)),
                .init("folders", JSON(settings.folders)),
            ] + (await sums()))
    }

    /// The members that `fk.status` and `fk.onChange` share.
    func sums() async -> [JSON.Member] {
        var owner = "nobody"
        var pid: Int64?
        var silence: Int?
        switch await downloader.owner {
        case .thisDownloader: owner = "this"
        case .process(let number, _):
            owner = "process"
            pid = Int64(number)
            silence = Int(engineWatch.silence(EngineWatch.now))
        case .nobody: break
        }
        let limit = (try? await downloader.control.rateLimit()) ?? nil
        let waits = table.waits.filter { $0.value > 0 }.sorted { $0.key.rawValue < $1.key.rawValue }
        return [
            .init("owner", .string(owner)), .init("ownerPid", JSON(pid)),
            .init("silentSeconds", JSON(silence)), .init("free", JSON(freeBytes)),
            .init("waiting", .object(waits.map { .init($0.key.rawValue, JSON($0.value)) })),
            .init("revision", .integer(Int64(clamping: table.revision))),
            .init("bytesPerSecond", .integer(table.bytesPerSecond)), .init("rateLimit", JSON(limit)),
            .init("total", JSON(table.count)), .init("states", PageDocuments.states(table.states)),
        ]
    }

    /// Bytes that are free in the default folder; nil if unknown.
    private var freeBytes: Int64? {
        var status = statvfs()
        guard let folder = settings.folders.first, statvfs(folder, &status) == 0 else { return nil }
        let (bytes, isTooLarge) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return isTooLarge ? Int64.max : Int64(clamping: bytes)
    }

    private func tasks(_ query: TaskQuery) throws(RPCError) -> JSON {
        try spend(rows: query.limit)
        let window = query.window(of: &table)
        let totals = window.totals
        return .members([
            "revision": .integer(Int64(clamping: table.revision)), "total": JSON(totals.count),
            "offset": JSON(query.offset), "received": .integer(totals.received), "expected": .integer(totals.expected),
            "isExpectedKnown": .bool(totals.unknownLengths == 0), "bytesPerSecond": .integer(window.bytesPerSecond),
            "states": PageDocuments.states(totals.states),
            "tasks": .array(window.rows.map { .object(PageDocuments.row($0)) }),
        ])
    }

    private func details(_ call: PageCall) async throws(RPCError) -> JSON {
        let row = try row(named: call.needed("id"))
        let isOwned = await downloader.owner == .thisDownloader
        guard let record = try? reader.record(row.id) else { throw RPCError("There is no task \(row.id.short).") }
        return PageDocuments.details(row, record, isOwned: isOwned)
    }

    /// - Throws: the reason, with the folder's name, if the barrels cannot be listed.
    private func barrels() async throws(RPCError) -> JSON {
        let names: [String]
        do throws(DownloadError) {
            names = try await downloader.messager.barrels()
        } catch {
            throw RPCError(error.message)
        }
        var documents: [JSON] = []
        for name in names {
            // Deleted meanwhile.
            guard let info = try? await downloader.messager.barrelInfo(name) else { continue }
            let options = (try? reader.barrel(name))?.options
            documents.append(
                .members([
                    "name": .string(name), "origin": JSON(options?.origin), "commit": JSON(options?.commit),
                    "total": JSON(info.total), "complete": JSON(info.states[.complete] ?? 0),
                    "error": JSON(info.states[.error] ?? 0), "received": .integer(info.count.received),
                    "expected": JSON(info.count.expected), "isExpectedKnown": .bool(info.isExpectedKnown),
                    "bytesPerSecond": .integer(Int64(info.bytesPerSecond)), "rateLimit": JSON(options?.rateLimit),
                    "states": PageDocuments.states(info.states),
                ]))
        }
        return .array(documents)
    }

    private func middlewares() throws(RPCError) -> JSON {
        do throws(DownloadError) {
            let untrusted = try downloader.programs.untrusted().map(\.name)
            return .array(
                try downloader.programs.list().map { program in
                    .members([
                        "name": .string(program.name), "stage": .string(program.stage.rawValue),
                        "priority": JSON(program.priority), "barrel": JSON(program.barrel),
                        "timeLimit": .number(program.timeLimit.inSeconds),
                        "program": JSON(program.arguments),
                        "directory": .string(program.directory),
                        "trusted": .bool(!untrusted.contains(program.name)),
                    ])
                })
        } catch { throw RPCError(error) }
    }
}
