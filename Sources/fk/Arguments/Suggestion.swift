/// Finds the word that the user most likely meant.
enum Suggestion {
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
