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

    private struct Parts {
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
