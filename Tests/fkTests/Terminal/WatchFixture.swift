import FKCore
import FKMiddleware
import Foundation

@testable import fk

/// Tasks, a model of them, and its screen. Names are the ends of URLs.
protocol WatchFixture {}

extension WatchFixture {
    func id(_ name: String) -> TaskID { TaskID(url: "http://h/\(name)") }

    func info(
        _ name: String, _ state: DownloadState, received: Int64 = 0, expected: Int64? = nil, barrels: [String] = []
    ) -> DownloadInfo {
        var info = DownloadInfo(
            id: id(name), url: "http://h/\(name)", state: state,
            count: ByteCount(received: received, expected: expected))
        info.barrels = barrels
        return info
    }

    func model(_ infos: [DownloadInfo]) -> WatchModel {
        var model = WatchModel()
        model.apply(.all(infos), time: 0)
        model.apply(.owner(pid: 4711), time: 0)
        return model
    }

    func names(_ model: inout WatchModel) -> [String] {
        model.shown().compactMap { model.watched.tasks[$0]?.info.shownName }
    }

    func frame(
        _ model: inout WatchModel, columns: Int = 80, rows: Int = 24, color: Bool = false, unicode: Bool = true
    ) -> [String] {
        WatchFrame(
            size: .init(columns: columns, rows: rows), usesColor: color, usesUnicode: unicode, runCommand: "fk run",
            time: 0, now: Date(timeIntervalSince1970: 0)
        ).lines(&model)
    }

    /// A task of each state.
    var mixed: [DownloadInfo] {
        var failed = info("gone", .error)
        failed.error = DownloadError(.httpStatus, "The server answered 404.")
        return [
            info("done", .complete, received: 10, expected: 10), info("wait", .idle), failed,
            info("run", .action, received: 5, expected: 10), info("held", .suspend, received: 5, expected: 10),
            info("off", .cancel),
        ]
    }
}
