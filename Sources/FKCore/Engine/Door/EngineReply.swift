import FKMiddleware

/// The answer to an `EngineRequest` in the mailbox.
package enum EngineReply: Codable, Sendable, Hashable {
    /// The result for each task of `add`, in order.
    case added([AddResult])
    /// The result for each task that a verb or toggle selected.
    case verbs([VerbResult])
    /// The request is complete; a line for people.
    case done(note: String)
    /// The limits in force.
    case limits(LimitsReport)
    /// The request is complete; the number of tasks it concerned.
    case count(Int)
    /// The request failed.
    case failed(DownloadError)
}

extension EngineReply {
    /// Combines the answers to the portions of one request.
    ///
    /// - Throws: `.corruptInfo` for answers of different kinds.
    package init(pages: [EngineReply]) throws {
        guard let first = pages.first, pages.count > 1 else {
            self = pages.first ?? .verbs([])
            return
        }
        var added: [AddResult] = []
        var results: [VerbResult] = []
        for page in pages {
            switch (first, page) {
            case (.added, .added(let list)): added += list
            case (.verbs, .verbs(let list)): results += list
            default: throw DownloadError(.corruptInfo, "The pages of the engine's answer do not belong together.")
            }
        }
        if case .added = first { self = .added(added) } else { self = .verbs(results) }
    }

    /// The same answer, divided into answers of about `size` bytes each.
    package func pages(ofBytes size: Int) -> [EngineReply] {
        switch self {
        case .added(let list):
            list.portions(ofBytes: size) { 200 + ($0.error?.messageSize ?? 0) }.map(EngineReply.added)
        case .verbs(let list):
            list.portions(ofBytes: size) { 300 + 2 * ($0.url.utf8.count + $0.note.utf8.count) }.map(EngineReply.verbs)
        case .done, .limits, .count, .failed: [self]
        }
    }
}

extension DownloadError {
    /// The approximate size in a message, in bytes.
    fileprivate var messageSize: Int {
        200 + 2 * (message.utf8.count + (url?.utf8.count ?? 0) + (underlying?.utf8.count ?? 0))
    }
}

extension TaskDescription {
    /// The approximate size in a message, in bytes. JSON writes a slash as two bytes.
    package var messageSize: Int {
        var size = 400 + 2 * (url.utf8.count + (directory?.utf8.count ?? 0) + (fileName?.utf8.count ?? 0))
        for mirror in mirrors { size += 2 * mirror.utf8.count + 4 }
        for (name, value) in attributes { size += 2 * (name.utf8.count + value.utf8.count) + 8 }
        guard hasOptions else { return size }
        let options = options
        for field in options.headers ?? [] { size += 2 * (field.name.utf8.count + field.value.utf8.count) + 40 }
        size += (options.pieces?.bytes?.count ?? 0) * 3 / 2
        for name in options.secretHeaders ?? [] { size += 2 * name.utf8.count + 4 }
        return size + 2 * (options.proxy?.utf8.count ?? 0)
    }
}

extension Array {
    /// Divides the array into portions of about `limit` bytes with at least one element each. An empty array is one
    /// portion.
    func portions(ofBytes limit: Int, _ size: (Element) -> Int) -> [[Element]] {
        var portions: [[Element]] = []
        var begin = startIndex
        var sum = 0
        for index in indices {
            let own = size(self[index])
            if sum + own > limit, index > begin {
                portions.append(Array(self[begin..<index]))
                begin = index
                sum = 0
            }
            sum += own
        }
        portions.append(Array(self[begin...]))
        return portions
    }
}
