import FKMiddleware

/// The sources of a file's bytes, where no other member of the record has them. For `fk provenance`.
///
/// Bytes without an entry came from the task's own URL. All URLs are masked.
package struct Trace: Codable, Sendable, Hashable {
    /// The maximum size in bytes of what a record keeps for `fk provenance`, as JSON.
    package static let limit = 300

    /// The redirects between the requested address and the one that answered, in order; nil for none.
    package private(set) var via: [String]?
    /// The sources besides the task's own URL.
    private var sources: [String]?
    /// The end of each run of bytes and its source, in ascending order: 0 is the task's own URL, n the source n - 1.
    private var runs: [Int64]?
    /// True if runs or redirects were left out, because the record has no room for them.
    package private(set) var isCut: Bool?

    package init() {}

    /// True if a response middleware has changed or copied the file: its digest says nothing of the present one.
    package private(set) var isChanged: Bool?

    package var isEmpty: Bool { self == Trace() }

    /// A source and the bytes that it has sent; nil is the task's own URL.
    package struct Run: Sendable, Hashable {
        /// The masked URL, or its origin if the URL was too long.
        package var source: String?
        package var range: Range<Int64>
    }

    /// The sources of a file. If `isCut`, bytes without a run may be of any source.
    package func runs(length: Int64) -> [Run] {
        var runs: [Run] = []
        func add(_ start: Int64, _ end: Int64, _ source: String?) {
            let end = min(end, length)
            if start < end, isCut != true || source != nil { runs.append(Run(source: source, range: start..<end)) }
        }
        var position: Int64 = 0
        for span in spans {
            add(position, span.start, nil)
            add(span.start, span.end, span.source)
            position = span.end
        }
        add(position, length, nil)
        return runs
    }

    /// A source begins to send these bytes. Those of other sources in the range do not count any more.
    ///
    /// - Parameter source: nil for the task's own URL.
    package mutating func record(_ range: Range<Int64>, from source: String?) {
        guard !range.isEmpty, source != nil || runs != nil else { return }
        var all = spans.flatMap { span in
            [(span.start, min(span.end, range.lowerBound)), (max(span.start, range.upperBound), span.end)]
                .filter { $0.0 < $0.1 }.map { Span(start: $0.0, end: $0.1, source: span.source) }
        }
        all.append(Span(start: range.lowerBound, end: range.upperBound, source: source))
        spans = all
    }

    /// The response came through these redirects.
    package mutating func pass(through urls: [String]) { via = urls.isEmpty ? nil : urls.map(\.masked) }

    /// A response middleware has changed or copied the file.
    package mutating func recordChange() { isChanged = true }

    /// Shortens the URLs to their origins, and then leaves the shortest runs out, until the JSON has at most this many bytes.
    package mutating func fit(in limit: Int) {
        guard !isEmpty, size > limit else { return }
        via = via?.map(Self.origin)
        spans = spans.map { Span(start: $0.start, end: $0.end, source: $0.source.map(Self.origin)) }
        while size > limit, !isEmpty {
            isCut = true
            guard let shortest = spans.filter({ $0.source != nil }).min(by: { $0.end - $0.start < $1.end - $1.start })
            else { return via = nil }
            spans.removeAll { $0 == shortest }
        }
    }

    private var size: Int { (try? StoreJSON.encode(self).count) ?? .max }

    private static func origin(_ url: String) -> String { url.site }

    // MARK: Spans

    /// A run with its start.
    private struct Span: Hashable {
        var start: Int64
        var end: Int64
        var source: String?
    }

    /// The runs without those of the task's own URL. They do not overlap.
    private var spans: [Span] {
        get {
            var start: Int64 = 0
            let runs = runs ?? []
            return stride(from: 0, to: runs.count - 1, by: 2).compactMap { index in
                defer { start = runs[index] }
                let source = Int(runs[index + 1])
                guard source > 0, let sources, source <= sources.count, start < runs[index] else { return nil }
                return Span(start: start, end: runs[index], source: sources[source - 1])
            }
        }
        set {
            (sources, runs) = (nil, nil)
            var names: [String] = []
            var flat: [Int64] = []
            for span in newValue.sorted(by: { $0.start < $1.start }) {
                guard let source = span.source else { continue }
                if !names.contains(source) { names.append(source) }
                let number = Int64((names.firstIndex(of: source) ?? 0) + 1)
                let end = flat.isEmpty ? 0 : flat[flat.count - 2]
                if end == span.start, flat.last == number {
                    flat[flat.count - 2] = span.end
                } else {
                    flat += (end < span.start ? [span.start, 0] : []) + [span.end, number]
                }
            }
            if !flat.isEmpty { (sources, runs) = (names, flat) }
        }
    }
}

extension TaskRecord {
    /// The sources of the file (`Trace.runs`).
    package func sources(length: Int64) -> [Trace.Run] { (trace ?? Trace()).runs(length: length) }

    /// A source begins to send these bytes.
    package mutating func record(_ range: Range<Int64>, from url: String) {
        let source = url == task.url ? nil : url
        guard source != nil || trace != nil else { return }
        trace { $0.record(range, from: source.map(\.masked)) }
    }

    /// A response middleware has changed or copied the finished file.
    package mutating func recordChange() { trace { $0.recordChange() } }

    /// The last response came through these redirects.
    mutating func pass(through urls: [String]) {
        if !urls.isEmpty || trace != nil { trace { $0.pass(through: urls) } }
    }

    private mutating func trace(_ change: (inout Trace) -> Void) {
        var trace = trace ?? Trace()
        change(&trace)
        let list = task.optionsBox?.value.list.flatMap { try? StoreJSON.encode($0).count + 8 } ?? 0
        // `"completedBy":"…"` and the name of this member.
        trace.fit(in: Trace.limit - list - 40)
        own.trace = trace.isEmpty ? nil : trace
    }
}
