import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// aria2's methods that change something.
extension RPCService {
    func command(_ method: String, _ params: Parameters) async throws(RPCError) -> JSON {
        switch method {
        case "aria2.addUri": return try await addURIs([params])[0].get()
        case "aria2.addMetalink": return try await addMetalink(params)
        case "aria2.remove", "aria2.forceRemove": return try await remove(params)
        case "aria2.pause", "aria2.forcePause": return try await pause(params)
        case "aria2.unpause": return try await unpause(params)
        case "aria2.pauseAll", "aria2.forcePauseAll": return try await verb(.suspend, .all)
        case "aria2.unpauseAll": return try await verb(.resume, .all)
        case "aria2.changePosition": return try await changePosition(params)
        case "aria2.changeUri": return try await changeURI(params)
        case "aria2.changeOption": return try await changeOption(params)
        case "aria2.changeGlobalOption": return try await changeGlobalOption(params)
        case "aria2.purgeDownloadResult":
            for state in [DownloadState.complete, .error, .cancel] { _ = try await verb(.forget, .state(state)) }
            return "OK"
        case "aria2.removeDownloadResult":
            let row = try row(params.string(0))
            guard row.state.isEnded else {
                throw RPCError("Could not remove download result of GID#\(GID.text(row.gid))")
            }
            return try await verb(.forget, .id(row.id))
        case "aria2.saveSession": return try saveSession()
        case "aria2.shutdown": return shutDown(isForced: false)
        case "aria2.forceShutdown": return shutDown(isForced: true)
        default: throw .noSuchMethod(method)
        }
    }

    // MARK: Adding

    /// New downloads of neighbouring calls that the engine has not been asked for yet.
    private struct NewDownloads {
        private(set) var tasks: [(call: Int, task: TaskDescription)] = []
        private var ids: Set<TaskID> = []
        private var gids: Set<String> = []

        func contains(_ id: TaskID) -> Bool { ids.contains(id) }

        /// - Returns: false if another one has that gid.
        mutating func claim(gid: String) -> Bool { gids.insert(gid).inserted }

        mutating func append(_ task: TaskDescription, _ id: TaskID, of call: Int) {
            ids.insert(id)
            tasks.append((call, task))
        }
    }

    /// Adds the downloads of neighbouring calls together, because the engine takes a turn for each request.
    func addURIs(_ calls: [Parameters]) async -> [Result<JSON, RPCError>] {
        var results = [Result<JSON, RPCError>?](repeating: nil, count: calls.count)
        var new = NewDownloads()
        for (call, params) in calls.enumerated() {
            do throws(RPCError) {
                let uris = try params.strings(0)
                let options = CallOptions(try params.optionalObject(1))
                let position = try params.position(2)
                var task = try describe(uris, options)
                task.startsSuspended = options["pause"] == "true" ? true : nil
                // A second download of a URL takes its name from the first one.
                if position != nil || new.contains(id(of: task)) { await add(&new, at: nil, &results) }
                if let gid = options["gid"], !gid.isEmpty {
                    guard GID.isWhole(gid) else { throw RPCError("Invalid GID \(gid)") }
                    guard GID.number(gid).flatMap({ table.id(ofGID: $0) }) == nil, new.claim(gid: gid.lowercased())
                    else { throw RPCError("GID \(gid) is used already.") }
                    task.attributes[GID.attribute] = gid.lowercased()
                }
                if let known = try await again(task) {
                    new.append(known, id(of: known), of: call)
                    if position != nil { await add(&new, at: position, &results) }
                } else {
                    results[call] = .success(.string(GID.text(refuse(task).gid)))
                }
            } catch {
                results[call] = .failure(error)
            }
        }
        await add(&new, at: nil, &results)
        return results.compactMap(\.self)
    }

    private func add(
        _ new: inout NewDownloads, at position: Int?, _ results: inout [Result<JSON, RPCError>?]
    ) async {
        let tasks = new.tasks
        new = NewDownloads()
        guard !tasks.isEmpty else { return }
        do throws(RPCError) {
            let rows = try await add(tasks.map(\.task), at: position)
            for (one, row) in zip(tasks, rows) { results[one.call] = row.map { .string(GID.text($0.gid)) } }
        } catch {
            for one in tasks { results[one.call] = .failure(error) }
        }
    }

    private func addMetalink(_ params: Parameters) async throws(RPCError) -> JSON {
        let text = try params.string(0)
        let options = globals.completing(CallOptions(try params.optionalObject(1)))
        let position = try params.position(2)
        let broken = RPCError("Could not parse Metalink XML document.")
        guard let data = Data(base64Encoded: text) else { throw broken }
        let manifest: Manifest
        do throws(ManifestError) { manifest = try Manifest(parsing: Array(data)) } catch {
            throw RPCError("\(broken.message) \(error.description)")
        }
        guard manifest.form == .metalink4 || manifest.form == .metalink3 else { throw broken }
        let described = try describe(manifest.entries, options)
        guard !described.isEmpty else { throw RPCError("No files to download.") }
        var tasks: [TaskDescription] = []
        var taken: Set<TaskID> = []
        var rows: [TaskRow?] = []
        for task in described {
            guard let known = try await again(task, taken) else {
                rows.append(refuse(task))
                continue
            }
            taken.insert(known.id)
            tasks.append(known)
            rows.append(nil)
        }
        var added = try await add(tasks, at: position).makeIterator()
        var gids: [JSON] = []
        for row in rows {
            let made = if let row { row } else { try added.next()?.get() }
            if let made { gids.append(.string(GID.text(made.gid))) }
        }
        return .array(gids)
    }

    /// The tasks of a list. An entry that cannot be fetched refuses the list.
    private func describe(
        _ entries: [Manifest.Entry], _ options: CallOptions
    ) throws(RPCError) -> [TaskDescription] {
        try options.check()
        let folder = try gate.folder(options["dir"])
        var folders = EntryFolders()
        var tasks: [TaskDescription] = []
        for entry in entries {
            var entry = entry
            entry.options = options.ofTask + entry.options
            do throws(EntryFault) {
                var task = try entry.given(in: folder, &folders)
                if options["pause"] == "true" { task.startsSuspended = true }
                if task.options.existing == nil { task.options.existing = .rename }
                tasks.append(task)
            } catch {
                throw RPCError("A file of the list cannot be fetched: \(error.reason).")
            }
        }
        return tasks
    }

    // MARK: Verbs

    private func remove(_ params: Parameters) async throws(RPCError) -> JSON {
        let row = try queued(params.string(0), "Active Download not found for")
        _ = try await verb(.cancel, .id(row.id))
        return .string(GID.text(row.gid))
    }

    private func pause(_ params: Parameters) async throws(RPCError) -> JSON {
        let row = try row(params.string(0))
        guard row.state == .action || row.state == .idle else {
            throw RPCError("GID#\(GID.text(row.gid)) cannot be paused now")
        }
        _ = try await verb(.suspend, .id(row.id))
        return .string(GID.text(row.gid))
    }

    private func unpause(_ params: Parameters) async throws(RPCError) -> JSON {
        let row = try row(params.string(0))
        guard row.state == .suspend else {
            throw RPCError("GID#\(GID.text(row.gid)) cannot be unpaused now")
        }
        _ = try await verb(row.state == .suspend ? .resume : .action, .id(row.id))
        return .string(GID.text(row.gid))
    }

    private func verb(_ verb: Verb, _ selector: TaskSelector) async throws(RPCError) -> JSON {
        _ = try await perform(verb, selector)
        return "OK"
    }

    /// Applies a verb, and the table shows its results.
    func perform(_ verb: Verb, _ selector: TaskSelector) async throws(RPCError) -> [VerbResult] {
        if acceptRefused(verb, selector) { return [] }
        do throws(DownloadError) {
            let results = try await downloader.engine.perform(.verb(verb, selector))
            await apply(results)
            return results
        } catch { throw RPCError(error) }
    }

    /// Applies a verb to many tasks with one request to the engine.
    func perform(_ verb: Verb, _ ids: [TaskID]) async throws(RPCError) -> [VerbResult] {
        let ids = ids.filter { !acceptRefused(verb, .id($0)) }
        guard !ids.isEmpty else { return [] }
        do throws(DownloadError) {
            let results = try await downloader.control.apply(verb, to: ids)
            await apply(results)
            return results
        } catch { throw RPCError(error) }
    }

    // MARK: Queue and addresses

    private func changePosition(_ params: Parameters) async throws(RPCError) -> JSON {
        let gid = try params.string(0)
        let offset = try params.integer(1)
        let how = try params.string(2)
        guard ["POS_SET", "POS_CUR", "POS_END"].contains(how) else { throw RPCError("Illegal argument.") }
        let row = try row(gid)
        guard let place = table.queuePlace(of: row.id) else {
            throw RPCError("GID#\(GID.text(row.gid)) not found in the waiting queue.")
        }
        let base =
            switch how {
            case "POS_CUR": place
            case "POS_END": table.waiting.count - 1
            default: 0
            }
        let (sum, isTooLarge) = base.addingReportingOverflow(offset)
        return JSON(try await move(row.id, to: isTooLarge ? offset : sum))
    }

    private func changeURI(_ params: Parameters) async throws(RPCError) -> JSON {
        let gid = try params.string(0)
        let index = try params.integer(1, atLeast: 1)
        let removed = try params.strings(2)
        let added = try params.strings(3)
        let position = try params.position(4)
        let row = try queued(gid, "Cannot remove URIs from")
        guard index == 1 else { throw RPCError("fileIndex is out of range") }
        let before = [row.url] + row.mirrors
        // Each of them removes one address. A list of 100,000 is walked once.
        var wanted: [String: Int] = [:]
        for uri in removed { if let url = try? uri.normalizedURL() { wanted[url, default: 0] += 1 } }
        var urls = before.filter { url in
            guard let count = wanted[url], count > 0 else { return true }
            wanted[url] = count - 1
            return false
        }
        let removedCount = before.count - urls.count
        let new = added.compactMap { try? $0.normalizedURL() }
        urls.insert(contentsOf: new, at: min(position ?? urls.count, urls.count))
        if urls != before, let first = urls.first {
            do throws(DownloadError) {
                var change = TaskChange(row.id)
                change.mirrors = Array(urls.dropFirst())
                try await downloader.control.change([change])
                if first != row.url { try await downloader.control.relink(row.id, to: first) }
            } catch { throw RPCError(error) }
            await reread([row.id])
        } else if urls.isEmpty {
            throw RPCError("GID#\(GID.text(row.gid)) would have no URI left.")
        }
        return .array([JSON(removedCount), JSON(new.count)])
    }

    // MARK: The end

    private func shutDown(isForced: Bool) -> JSON {
        if !isEnding {
            isEnding = true
            let onShutdown = settings.onShutdown
            Task {
                // The answer leaves first.
                try? await Task.sleep(for: .milliseconds(300))
                onShutdown(isForced)
            }
        }
        return "OK"
    }
}
