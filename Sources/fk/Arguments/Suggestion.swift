/// Finds the word that the user most likely meant.
enum Suggestion {
    /// Words of other programs, and the commands of the same meaning.
    private static let meanings: [String: [String]] = [
        "delete": ["forget", "trash"], "del": ["forget", "trash"], "remove": ["forget", "trash", "remove"],
        "erase": ["trash", "forget"], "purge": ["forget", "trash"], "clear": ["forget"],
        "clean": ["forget", "trim"], "prune": ["trim", "forget"], "gc": ["trim"],
        "rm": ["forget", "remove"], "drop": ["cancel", "forget"], "discard": ["cancel", "forget"],
        "download": ["get"], "fetch": ["get"], "add": ["get"], "new": ["create", "get"], "mk": ["create"],
        "make": ["create"], "stop": ["suspend", "cancel"], "hold": ["suspend"], "halt": ["suspend"],
        "pause": ["suspend"], "abort": ["cancel"], "kill": ["cancel"], "continue": ["resume"], "unpause": ["resume"],
        "unsuspend": ["resume"], "uncancel": ["retry"],
        "start": ["run", "resume"], "go": ["run"], "begin": ["run"], "queue": ["list", "run"], "ps": ["list"],
        "ls": ["list"], "dir": ["list"], "tasks": ["list"], "jobs": ["list"], "downloads": ["list"],
        "status": ["show", "list"], "show": ["info", "list"], "details": ["info"], "stat": ["info"],
        "describe": ["info", "show"], "explain": ["why"], "reason": ["why"], "history": ["why"], "log": ["why"],
        "again": ["retry"], "restart": ["retry"], "redo": ["retry"], "repeat": ["retry"], "top": ["watch"],
        "monitor": ["watch"], "progress": ["watch"], "follow": ["watch"], "tail": ["watch"], "speed": ["limit"],
        "rate": ["limit"], "throttle": ["limit"], "group": ["barrel"], "groups": ["barrel"], "barrels": ["barrel"],
        "set-url": ["relink"], "url": ["relink"], "move": ["relink"], "attribute": ["set"], "tag": ["set"],
        "settings": ["config"], "preferences": ["config"], "options": ["config"], "manual": ["man"],
        "complete": ["completions"], "completion": ["completions"], "test": ["demo"], "usage": ["help"],
        "save": ["export"], "load": ["import"], "dump": ["export"], "prometheus": ["metrics"], "stats": ["metrics"],
        "check": ["verify"], "hash": ["verify"], "plugin": ["middleware"], "hook": ["middleware"],
        "hooks": ["middleware"], "sources": ["source"],
    ]

    /// Words with a meaning of their own that no command has. They are no typing errors, although they look like the name of a command.
    private static let strangers = [
        "rename": "tasks and barrels keep their names", "move": "finished files stay where they are",
        "unpublish": "a published folder is yours to delete", "untrash": "deleted files do not come back",
        "unlink": "'forget' and 'trash' end a task",
    ]

    /// Why there is no command for `word`, which means something else than the commands of similar names; nil for any other word.
    static func lack(of word: String) -> String? { strangers[word.lowercased()].map { "fk has none: \($0)." } }

    /// The commands whose meaning is that of `word`; empty if there are none.
    static func meant(by word: String, among names: [String]) -> [String] {
        (meanings[word.lowercased()] ?? []).filter(names.contains)
    }

    /// The candidate most similar to `word`; nil if none is similar. At most a third of the longer word may differ,
    /// but always one letter.
    static func nearest(to word: String, among candidates: some Sequence<String>) -> String? {
        var best: (name: String, distance: Int)?
        for candidate in candidates {
            let distance = distance(word, candidate)
            let allowed = max(1, max(word.count, candidate.count) / 3)
            // The start of a word is a better match than its letters suggest: `sus` for `suspend`.
            let isStart = word.count >= 2 && candidate.hasPrefix(word)
            guard distance <= allowed || isStart else { continue }
            let rank = isStart ? 1 : distance
            if best.map({ rank < $0.distance }) ?? true { best = (candidate, rank) }
        }
        return best?.name
    }

    /// The number of letters to insert, remove, replace or swap with their neighbour to change one word into the
    /// other (optimal string alignment).
    static func distance(_ left: String, _ right: String) -> Int {
        let a = Array(left)
        let b = Array(right)
        guard !a.isEmpty, !b.isEmpty else { return max(a.count, b.count) }
        var beforeLast = [Int](repeating: 0, count: b.count + 1)
        var last = Array(0...b.count)
        for i in 1...a.count {
            var row = [Int](repeating: 0, count: b.count + 1)
            row[0] = i
            for j in 1...b.count {
                let replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                row[j] = min(last[j] + 1, row[j - 1] + 1, replaced)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    row[j] = min(row[j], beforeLast[j - 2] + 1)
                }
            }
            beforeLast = last
            last = row
        }
        return last[b.count]
    }
}
