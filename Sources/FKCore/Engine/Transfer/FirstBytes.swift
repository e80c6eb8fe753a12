import FKMiddleware

/// What the first bytes of a response have to show before any is written: that they are no web page, or that they are equal to the
/// stored bytes before the seam.
struct FirstBytes {
    /// What a piece has shown.
    enum Verdict {
        /// There is nothing to look at, or nothing any more.
        case nothing
        case needsMore
        /// No web page. The bytes are offered again.
        case isFile(Page)
        /// The bytes before the seam are equal. New bytes begin at this offset of the piece.
        case joins(newBytesAt: Int)
        case isPage(DownloadError)
        case differs
    }

    /// The first bytes of a body that may be a web page.
    struct Page {
        /// The error for a page.
        var error: DownloadError
        var held: [UInt8] = []
        /// True if the part file is empty.
        var isFresh: Bool
        /// The length of the body; nil if it is unknown.
        var length: Int64?
    }

    /// A body that may be a web page; nil once its first bytes have shown that it is none.
    private var page: Page?
    /// The bytes before the seam, requested again for comparison.
    private var seam: TailComparison?
    /// First bytes that were looked at, and are written once the gate is open.
    private var seen: [UInt8] = []
    /// True until they have shown it. The head then says nothing about the stored bytes.
    private(set) var isUndecided = false

    /// Nothing is to be looked at.
    init() {}

    /// The first bytes are compared with stored ones, which `compare(with:)` gives.
    mutating func beginComparison() { isUndecided = true }

    /// Compares the first bytes with the stored ones before the seam.
    mutating func compare(with held: [UInt8]) { seam = TailComparison(held: held) }

    /// The body may be a web page.
    mutating func look(for page: Page) {
        self.page = page
        isUndecided = true
    }

    /// Looks at the next piece.
    mutating func look(at bytes: UnsafeRawBufferPointer) -> Verdict {
        if let page { return look(at: bytes, page) }
        guard seam != nil, let verdict = seam?.feed(bytes) else { return .nothing }
        switch verdict {
        case .needsMore: return .needsMore
        case .different: return .differs
        case .equal(let newBytesAt):
            seam = nil
            isUndecided = false
            return .joins(newBytesAt: newBytesAt)
        }
    }

    private mutating func look(at bytes: UnsafeRawBufferPointer, _ page: Page) -> Verdict {
        let first = page.held + bytes.prefix(PageRules.lookedAt - page.held.count)
        let isAll = page.length.map { Int64(page.held.count + bytes.count) >= $0 } ?? false
        switch PageRules.isPage(first, isAll: isAll) {
        case nil:
            self.page?.held = first
            return .needsMore
        case true?: return .isPage(page.error)
        case false?:
            self.page = nil
            seen = page.held
            isUndecided = false
            return .isFile(page)
        }
    }

    /// The body has ended before its first bytes have shown what it is: an empty one is a file, and what begins as a page does is one.
    ///
    /// - Returns: the error for a page; nil for a file.
    mutating func end() -> DownloadError? {
        guard let page else { return nil }
        guard page.held.isEmpty, page.isFresh else { return page.error }
        isUndecided = false
        return nil
    }

    /// The bytes that are to be written before the others; empty if there are none.
    mutating func drainSeen() -> [UInt8] {
        guard !seen.isEmpty else { return [] }
        defer { seen = [] }
        return seen
    }
}
