import FKCore
import FKMiddleware

/// Labels that tell tasks with the same file name apart.
enum DistinctNames {
    /// The label of each task; nil for a name that only one task has.
    ///
    /// The first of these that differs among the tasks of one name is used: the host, the folder in the URL, the masked
    /// query, the beginning of the id.
    static func labels(_ infos: [DownloadInfo]) -> [String?] {
        var labels = [String?](repeating: nil, count: infos.count)
        let groups = Dictionary(grouping: infos.indices) { ExactText(infos[$0].shownName) }
        for indices in groups.values where indices.count > 1 {
            let parts = indices.map { Parts(id: infos[$0].id, url: infos[$0].url) }
            let kinds: [KeyPath<Parts, String>] = [\.host, \.folder, \.query, \.id]
            let kind = kinds.first { kind in Set(parts.map { ExactText($0[keyPath: kind]) }).count == parts.count }
            for (index, parts) in zip(indices, parts) { labels[index] = parts[keyPath: kind ?? \.id] }
        }
        return labels
    }

    fileprivate struct Parts {
        var host: String
        var folder: String
        var query: String
        var id: String

        init(id: TaskID, url: String) {
            let url = url.masked.urlParts
            host = String(url.hostPort)
            folder =
                url.path.utf8.split(separator: UInt8(ascii: "/")).dropLast().last.map { String(Substring($0)) } ?? ""
            query = url.query.map(String.init) ?? ""
            self.id = id.short
        }
    }
}

/// The names of the tasks that a run has shown so far, for lines that stay: a task whose name was there before gets a label.
/// It keeps the newest names, and a few tasks of each. The parts of a URL are computed only for a name that two tasks have.
struct SeenNames {
    private struct Task {
        var id: TaskID
        var url: String
    }

    private var tasks: [ExactText: [Task]] = [:]
    /// The names, oldest first.
    private var order: [ExactText] = []
    /// The most names, and the most tasks of one name.
    private static let limit = (names: 4_096, tasks: 64)

    /// Adds a task, and returns the label that tells it from the others of its name; nil if there are none.
    mutating func add(_ info: DownloadInfo) -> String? {
        let name = ExactText(info.shownName)
        let own = Task(id: info.id, url: info.url)
        guard let known = tasks[name] else {
            if order.count == Self.limit.names {
                for old in order.prefix(Self.limit.names / 2) { tasks[old] = nil }
                order.removeFirst(Self.limit.names / 2)
            }
            order.append(name)
            tasks[name] = [own]
            return nil
        }
        let others = known.filter { $0.id != own.id }
        if others.count == known.count, known.count < Self.limit.tasks { tasks[name]?.append(own) }
        return others.isEmpty ? nil : Self.label(own, others)
    }

    private static func label(_ own: Task, _ others: [Task]) -> String {
        let parts = DistinctNames.Parts(id: own.id, url: own.url)
        let others = others.map { DistinctNames.Parts(id: $0.id, url: $0.url) }
        let kinds: [KeyPath<DistinctNames.Parts, String>] = [\.host, \.folder, \.query]
        let kind = kinds.first { kind in
            let text = parts[keyPath: kind]
            return !text.isEmpty && others.allSatisfy { !$0[keyPath: kind].isExactly(text) }
        }
        return kind.map { parts[keyPath: $0] } ?? parts.id
    }
}
