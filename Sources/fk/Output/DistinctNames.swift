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
            let parts = indices.map { Parts(infos[$0]) }
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

        init(_ info: DownloadInfo) {
            let url = URLParts(URLMasking.mask(info.url))
            host = String(url.hostPort)
            folder =
                url.path.utf8.split(separator: UInt8(ascii: "/")).dropLast().last.map { String(Substring($0)) } ?? ""
            query = url.query.map(String.init) ?? ""
            id = info.id.short
        }
    }
}

/// The names of the tasks that a run has shown so far, for lines that stay: a task whose name was there before gets a label.
/// It keeps the newest names, and a few tasks of each.
struct SeenNames {
    /// A task, as hash values of its parts.
    private struct Task {
        var id: String
        var parts: [Int]
    }

    private var tasks: [ExactText: [Task]] = [:]
    /// The names, oldest first.
    private var order: [ExactText] = []
    /// The most names, and the most tasks of one name.
    private static let limit = (names: 4_096, tasks: 64)

    /// Adds a task, and returns the label that tells it from the others of its name; nil if there are none.
    mutating func add(_ info: DownloadInfo) -> String? {
        let name = ExactText(info.shownName)
        let parts = DistinctNames.Parts(info)
        let texts = [parts.host, parts.folder, parts.query]
        let own = Task(id: parts.id, parts: texts.map { ExactText($0).hashValue })
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
        guard !others.isEmpty else { return nil }
        let kind = texts.indices.first { kind in
            !texts[kind].isEmpty && others.allSatisfy { $0.parts[kind] != own.parts[kind] }
        }
        return kind.map { texts[$0] } ?? parts.id
    }
}
