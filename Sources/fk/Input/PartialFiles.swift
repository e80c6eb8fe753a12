import FKCore
import FKMiddleware
import Foundation

/// The partial files of another program in a folder, which tasks continue by their names (`--adopt DIR`).
struct PartialFiles: Sendable {
    /// The absolute path of the folder.
    let folder: String

    /// The endings that browsers and other programs give to unfinished files.
    static let endings = [".part", ".crdownload", ".download", ".partial", ".tmp"]

    init(_ folder: String) { self.folder = folder }

    /// Gives a task the partial file of its name, if there is one and the task has none of its own.
    func offer(to task: inout TaskDescription) {
        guard task.optionsBox?.value.adoptPath == nil else { return }
        let name = task.fileName ?? FileNameRules.name(url: task.url, head: nil)
        for path in [name] + Self.endings.map({ name + $0 }) {
            let path = "\(folder)/\(path)"
            var status = stat()
            if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
                task.options.adoptPath = path
                return
            }
        }
    }
}
