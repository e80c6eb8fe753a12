import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The environment of the process that runs the downloads, beside that of this command. Proxies and credentials come from the former: tasks do
/// not store those of an environment, because they may be secrets, and may differ tomorrow.
struct EngineEnvironment {
    let pid: Int32
    let own: [String: String]
    /// Empty where the system does not tell it.
    let engine: [String: String]

    /// - Parameter pid: the process that runs the downloads.
    init(of pid: Int32, own: [String: String]) {
        self.pid = pid
        self.own = own
        engine = Self.environment(of: pid)
    }

    /// The process that runs the downloads of the command's work path; nil if there is none.
    init?(_ context: CommandContext) {
        let workPath = context.global.place
        guard EngineLock.isHeld(workPath), let pid = EngineLock.holder(workPath)?.pid else { return nil }
        self.init(of: pid, own: context.environment)
    }

    /// What the requests of tasks lack there, a sentence each: it must be known before they are sent.
    func warnings(about tasks: [TaskDescription]) -> [String] {
        let begin = "process \(pid) runs the downloads of this work path. It uses the"
        var warnings: [String] = []
        let proxied = tasks.first { task in
            task.options.proxy == nil && proxy(own, task) != nil && proxy(own, task) != proxy(engine, task)
        }
        if let proxied, let proxy = proxy(own, proxied) {
            let shown = (try? ProxyAddress(proxy))?.shown ?? "that"
            warnings.append(
                "\(begin) proxies of its own environment, not \(shown) of this one. --proxy URL goes with the files of a command."
            )
        }
        var names: [String] = []
        for task in tasks {
            for name in task.credentials(in: own, unlike: engine) where !names.contains(name) {
                names.append(name)
            }
        }
        if !names.isEmpty {
            warnings.append(
                "\(begin) credentials of its own environment, not this \(names.joined(separator: ", ")). If these files need "
                    + "them, start that process with them, or give this command again once it has ended.")
        }
        return warnings
    }

    private func proxy(_ environment: [String: String], _ task: TaskDescription) -> String? {
        ProxyAddress.text(option: nil, url: task.url, environment: environment)
    }

    private static func environment(of pid: Int32) -> [String: String] {
        guard let file = FileHandle(forReadingAtPath: "/proc/\(pid)/environ"), let bytes = try? file.readToEnd() else {
            return [:]
        }
        let pairs = bytes.split(separator: 0).map {
            String(decoding: $0, as: UTF8.self).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        }
        return Dictionary(
            pairs.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) },
            uniquingKeysWith: { first, _ in first })
    }
}
