import FKCore
import FKMiddleware

/// The settings of `fk rpc` that clients of the page may change while it runs.
extension RPCService {
    static let settingNames: Set<String> = ["jobs", "connections", "folder", "rate", "daily"]

    /// Changes the settings that are named, all of them or none, and returns all.
    func changeSettings(_ call: PageCall) async throws(RPCError) -> JSON {
        var configure = await downloader.configure
        let before = configure
        if call.has("jobs") {
            guard !call.isNull("jobs") else { throw RPCError("fk.settings: jobs is a number from 1 to 256.") }
            configure.maxAction = try call.integer("jobs", in: 1...256, or: configure.maxAction)
        }
        if call.has("connections") {
            // null is the default.
            let count = try call.integer("connections", in: 0...256, or: 0)
            if count == 0, !call.isNull("connections") {
                throw RPCError("fk.settings: connections must be from 1 to 256, or null to let the server choose.")
            }
            configure.connections = count == 0 ? .automatic : .fixed(count)
        }
        let folder = call.has("folder") ? try gate.folder(call.text("folder")) : nil
        let rate: Int64?? = call.has("rate") ? .some(try rate(call.integer("rate", in: 0...Int.max, or: 0))) : nil
        let daily = call.has("daily") ? try windows(call) : nil
        do throws(DownloadError) {
            let old = try await downloader.control.standingLimit
            var limit = old
            if let rate { limit.rate = rate }
            if let daily { limit.daily = daily }
            // The limit first: it can be refused by the disk.
            if limit != old { try await downloader.control.setStandingLimit(limit) }
            if configure.maxAction != before.maxAction || configure.connections != before.connections {
                try await downloader.update(configure)
            }
        } catch { throw RPCError(error) }
        if let folder { globals.set("dir", [folder]) }
        return try await shownSettings()
    }

    private func rate(_ number: Int) -> Int64? { number == 0 ? nil : Int64(number) }

    /// The daily windows of a call: `[{"time": "08:00-18:00", "rate": 512000}]`.
    private func windows(_ call: PageCall) throws(RPCError) -> [DailyWindow] {
        let fault = RPCError(
            "fk.settings: daily is an array of {\"time\": \"08:00-18:00\", \"rate\": 512000}; null is no limit in that time."
        )
        var windows: [DailyWindow] = []
        for value in try call.objects("daily") ?? [] {
            guard let members = value.object, Set(members.map(\.name)).isSubset(of: ["time", "rate"]),
                let text = value["time"]?.string
            else { throw fault }
            guard var window = DailyWindow(text) else {
                throw RPCError(
                    "fk.settings: '\(text.visible)' is no time of a day. Give one such as 08:00-18:00 or 22:00-06:00."
                )
            }
            switch value["rate"] {
            case .null: break
            case .integer(let rate) where rate >= 0: window.rate = rate == 0 ? nil : rate
            default: throw fault
            }
            guard !windows.contains(where: window.isSameTime) else {
                throw RPCError("fk.settings: the time \(window.text) is there twice.")
            }
            windows.append(window)
        }
        guard windows.count <= DailyWindow.maxCount else {
            throw RPCError("fk.settings: daily has at most \(DailyWindow.maxCount) times.")
        }
        return windows
    }

    private func shownSettings() async throws(RPCError) -> JSON {
        let configure = await downloader.configure
        let folder = try gate.folder(globals["dir"])
        var connections: Int?
        if case .fixed(let count) = configure.connections { connections = count }
        do throws(DownloadError) {
            let limit = try await downloader.control.standingLimit
            let now = limit.limit(at: DailyWindow.minute(of: .now))
            return .members([
                "jobs": JSON(configure.maxAction), "connections": JSON(connections),
                "folder": .string(folder), "folders": JSON(settings.folders),
                "rate": JSON(limit.rate), "rateNow": JSON(now.rate), "window": JSON(now.window?.text),
                "daily": .array(limit.daily.map { .members(["time": .string($0.text), "rate": JSON($0.rate)]) }),
                "ownRate": JSON(configure.rateLimit), "minFree": JSON(configure.minFree),
            ])
        } catch { throw RPCError(error) }
    }
}
