// Prints the lines that the view of TaskView.swift shows for a task, as they change.
//
//     TaskView URL [FOLDER]
//
// Exit status: 0 when the file is there.

import FKCore
import FKMiddleware
import Foundation
import Observation

/// The content of the view as text.
@MainActor
func lines(_ model: TaskModel) -> String {
    let percent = (model.info?.fraction).map { "\(Int($0 * 100)) %" } ?? "-"
    let buttons = [model.canSuspend ? "[Pause]" : nil, model.canStart ? "[Start]" : nil].compactMap(\.self)
    return ([model.name, model.state.rawValue, percent] + buttons).joined(separator: "  ")
}

/// Prints the lines whenever they change, until the task has ended.
@MainActor
func show(_ model: TaskModel) async -> Bool {
    var last = ""
    while true {
        let (changes, change) = AsyncStream.makeStream(of: Void.self)
        let text = withObservationTracking {
            lines(model)
        } onChange: {
            change.finish()
        }
        if model.info != nil, text != last { print(text) }
        last = text
        if let error = model.info?.error { print("failed: \(error.message)") }
        if model.state == .complete || model.state == .error { return model.state == .complete }
        // The observation is called before the change.
        for await _ in changes {}
        await Task.yield()
    }
}

let arguments = CommandLine.arguments.dropFirst()
guard let url = arguments.first else {
    print("usage: TaskView URL [FOLDER]")
    exit(2)
}
let folder = URL(fileURLWithPath: arguments.dropFirst().first ?? ".")
var configure = Configure(workPath: folder.appendingPathComponent(".work"))
configure.progressInterval = .milliseconds(200)
let isComplete = try await withDownloader(configure) { downloader in
    await show(TaskModel(try await downloader.add(url, to: folder)))
}
exit(isComplete ? 0 : 1)
