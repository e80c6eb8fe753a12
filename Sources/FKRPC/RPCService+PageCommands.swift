import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The methods of the page that change something.
extension RPCService {
    func pageCommand(_ call: PageCall) async throws(RPCError) -> JSON {
        switch call.method {
        case "fk.add": return try await pageAdd(call)
        case "fk.import": return try await pageImport(call)
        case "fk.limit": return try await limit(call)
        case "fk.relink":
            let row = try row(named: call.needed("id"))
            let url = try call.needed("url")
            do throws(DownloadError) { try await downloader.control.relink(row.id, to: url) } catch {
                throw RPCError(error)
            }
            await reread([row.id])
            return .members(["done": true])
        case "fk.deleteBarrel":
            let name = try call.needed("barrel")
            do throws(DownloadError) { try await downloader.messager.deleteBarrel(name) } catch {
                throw RPCError(error)
            }
            await reread(table.rows.values.filter { $0.barrels.contains(name) }.map(\.id))
            return .members(["done": true])
        default:
            guard let verb = Verb(rawValue: String(call.method.dropFirst(3))) else { throw .noSuchMethod(call.method) }
            return try await apply(verb, call)
        }
    }

    // MARK: Adding

    private func pageAdd(_ call: PageCall) async throws(RPCError) -> JSON {
        let urls = try call.texts("urls") ?? []
        let mirrors = try call.texts("mirrors") ?? []
        let out = try call.text("out")
        guard !urls.isEmpty else { throw RPCError("fk.add needs urls.") }
        let partial = try call.text("adopt")
        guard urls.count == 1 || mirrors.isEmpty && out == nil && partial == nil else {
            throw RPCError("fk.add: mirrors, out and adopt are for a single URL.")
        }
        var members: [JSON.Member] = []
        if let dir = try call.text("dir") { members.append(.init("dir", .string(dir))) }
        if let partial { members.append(.init("adopt", .string(partial))) }
        if let out { members.append(.init("out", .string(out))) }
        if let checksum = try call.text("checksum") { members.append(.init("checksum", .string(checksum))) }
        if let headers = try call.texts("headers") {
            members.append(.init("header", JSON(headers)))
        }
        let rate = try call.integer("rateLimit", in: 0...Int.max, or: 0)
        if rate > 0 { members.append(.init("max-download-limit", .integer(Int64(rate)))) }
        let paused = try call.truth("paused")
        var caFile = try call.text("caFile")
        if let given = caFile {
            guard given.hasPrefix("/") else { throw RPCError("fk.add: caFile is an absolute path.") }
            let path = try gate.file(given)
            do throws(DownloadError) { try TransportOptions.checkAuthorities(path) } catch {
                throw RPCError("fk.add: caFile: \(error.message)")
            }
            caFile = path
        }
        var tasks: [Result<TaskDescription, RPCError>] = []
        var taken: Set<TaskID> = []
        for url in urls {
            do throws(RPCError) {
                try Self.checkSource(url)
                var task = distinct(try describe([url] + mirrors, CallOptions(members)), taken)
                if paused { task.startsSuspended = true }
                if let caFile { task.options.caPath = caFile }
                taken.insert(id(of: task))
                tasks.append(.success(task))
            } catch { tasks.append(.failure(error)) }
        }
        return .array(try await added(tasks, urls, barrel: call.text("barrel")))
    }

    /// - Throws: `RPCError` for a source in place of a link: the page fetches it in another way.
    private static func checkSource(_ url: String) throws(RPCError) {
        guard let source = SourceReference(url), source.namesObject, source.rest.hasPrefix("//") else { return }
        throw RPCError(
            "\(url.masked.visible) is a source and no link: choose \"All files of a source\" (fk.fetch)."
        )
    }

    /// Adds tasks and returns a document for each.
    private func added(
        _ tasks: [Result<TaskDescription, RPCError>], _ urls: [String], barrel: String?
    ) async throws(RPCError) -> [JSON] {
        if let barrel, let key = (try? reader.barrel(barrel))?.options.signedBy {
            throw RPCError(
                "The barrel \(barrel.visible) takes only files that the key \(SignatureKey.shown(key)) has signed: import "
                    + "its list with 'fk barrel import --signed-by'.")
        }
        var results = try await add(tasks.compactMap { try? $0.get() }, barrel: barrel, at: nil)[...]
        var documents: [JSON] = []
        for (task, url) in zip(tasks, urls) {
            var result: Result<TaskRow, RPCError>
            switch task {
            case .success: result = results.popFirst() ?? .failure(RPCError("The task is missing."))
            case .failure(let error): result = .failure(error)
            }
            switch result {
            case .success(let row):
                documents.append(
                    .members([
                        "id": .string(row.id.hex), "gid": .string(GID.text(row.gid)),
                        "url": .string(row.url.masked), "state": .string(row.state.rawValue), "new": true,
                        "error": .null,
                    ]))
            case .failure(let error):
                documents.append(
                    .members([
                        "id": .null, "gid": .null, "url": .string(url.masked), "state": .null, "new": false,
                        "error": .members(["code": "invalid-argument", "message": .string(error.message)]),
                    ]))
            }
        }
        return documents
    }

    private func pageImport(_ call: PageCall) async throws(RPCError) -> JSON {
        let text = try call.needed("text")
        let folder = try gate.folder(call.text("dir") ?? globals["dir"])
        let paused = try call.truth("paused")
        var reading = Manifest.Reading()
        reading.isAtPage = true
        if call.has("skipBad") { reading.skipsBadEntries = try call.truth("skipBad") }
        let manifest: Manifest
        do throws(ManifestError) {
            manifest = try Manifest(parsing: Array(text.utf8), fileName: try? call.text("fileName"), reading)
        } catch { throw RPCError(Self.allFaults(text, reading) ?? error.description) }
        var faults = manifest.faults.map { JSON.members(["line": JSON($0.line), "reason": .string($0.reason)]) }
        var folders = EntryFolders()
        var tasks: [Result<TaskDescription, RPCError>] = []
        var urls: [String] = []
        for entry in manifest.entries {
            do throws(EntryFault) {
                var entry = entry
                // The folders that a list names are allowed like the folders of a call.
                var base = folder
                if let own = entry.directory {
                    do throws(RPCError) { base = try gate.folder(own) } catch { throw EntryFault(error.message) }
                }
                entry.directory = nil
                var task = try entry.given(in: base, &folders)
                if let partial = task.optionsBox?.value.adopts {
                    do throws(RPCError) {
                        task.options.adopts = URL(fileURLWithPath: try gate.partial(partial.path, in: base))
                    } catch { throw EntryFault(error.message) }
                }
                if paused { task.startsSuspended = true }
                tasks.append(.success(task))
                urls.append(task.url)
            } catch {
                faults.append(.members(["line": JSON(entry.line), "reason": .string(error.reason)]))
            }
        }
        let documents =
            tasks.isEmpty ? [] : try await added(tasks, urls, barrel: call.text("barrel") ?? manifest.facts.barrel)
        return .members(["added": .array(documents), "faults": .array(faults)])
    }

    /// Every bad line of a list that is refused, one a line; nil if there is only one.
    private static func allFaults(_ text: String, _ reading: Manifest.Reading) -> String? {
        var reading = reading
        reading.skipsBadEntries = true
        guard let faults = try? Manifest(parsing: Array(text.utf8), reading).faults, faults.count > 1 else {
            return nil
        }
        let shown = faults.prefix(50).map { "Line \($0.line): \($0.reason)" }
        let more = faults.count > 50 ? ["and \(faults.count - 50) more"] : []
        return (["\(faults.count) lines are bad; nothing was added."] + shown + more).joined(separator: "\n")
    }

    // MARK: Verbs and limits

    private func apply(_ verb: Verb, _ call: PageCall) async throws(RPCError) -> JSON {
        var results: [VerbResult] = []
        if call.has("user") || call.has("password") {
            let user = try call.text("user") ?? ""
            guard call.has("ids"), !user.isEmpty else {
                throw RPCError("\(call.method): a login needs ids and a user.")
            }
        }
        if let names = try call.texts("ids") {
            var ids: [TaskID] = []
            for name in names { ids.append(try row(named: name).id) }
            if let user = try call.text("user") { try await logIn(ids, user, call.text("password") ?? "") }
            results = try await perform(verb, ids)
        } else if let barrel = try call.text("barrel") {
            results = try await perform(verb, .barrel(barrel))
        } else if try call.truth("all") {
            results = try await perform(verb, .all)
        } else {
            throw RPCError("\(call.method) needs ids, a barrel, or \"all\": true.")
        }
        if try call.truth("brief") { return brief(results) }
        return .array(
            results.map {
                .members([
                    "id": .string($0.id.hex), "url": .string($0.url.masked),
                    "verb": .string($0.verb.rawValue),
                    "before": .string($0.before.rawValue), "after": .string($0.after.rawValue),
                    "applied": .bool($0.applied), "note": .string($0.note),
                ])
            })
    }

    /// The results as numbers: those of 100,000 tasks would be longer than an answer may be.
    private func brief(_ results: [VerbResult]) -> JSON {
        .members([
            "applied": JSON(results.count(where: \.applied)), "unchanged": JSON(results.count { !$0.applied }),
            "note": JSON(results.first { !$0.applied }?.note),
        ])
    }

    /// Changes the login that tasks send.
    private func logIn(_ ids: [TaskID], _ user: String, _ password: String) async throws(RPCError) {
        var changes: [TaskChange] = []
        for id in ids {
            guard var options = (try? reader.record(id))?.task.options else {
                throw RPCError("There is no task \(id.short).")
            }
            let others = (options.headers ?? []).filter { $0.name.lowercased() != "authorization" }
            options.headers = others + [.login(user, password)]
            var change = TaskChange(id)
            change.options = options
            changes.append(change)
        }
        try await change(changes)
    }

    private func limit(_ call: PageCall) async throws(RPCError) -> JSON {
        let barrel = try call.text("barrel")
        let rate = call.has("rate") ? try call.integer("rate", in: 0...Int.max, or: 0) : 0
        if let name = try call.text("id") {
            guard barrel == nil else { throw RPCError("fk.limit: id and barrel exclude each other.") }
            return try await limit(row(named: name), call.has("rate") ? rate : nil)
        }
        do throws(DownloadError) {
            if call.has("rate") {
                try await downloader.control.setRateLimit(rate == 0 ? nil : Int64(rate), ofBarrel: barrel)
            }
            return .members(["rate": JSON(try await downloader.control.rateLimit(ofBarrel: barrel))])
        } catch { throw RPCError(error) }
    }

    /// The limit of a single task.
    ///
    /// - Parameter rate: 0 removes it, nil only shows it.
    private func limit(_ row: TaskRow, _ rate: Int?) async throws(RPCError) -> JSON {
        guard let record = try? reader.record(row.id) else { throw RPCError("There is no task \(row.id.short).") }
        var options = record.task.options
        if let rate {
            options.rateLimit = rate == 0 ? nil : Int64(rate)
            var change = TaskChange(row.id)
            change.options = options
            try await self.change([change])
        }
        return .members(["rate": JSON(options.rateLimit)])
    }
}
