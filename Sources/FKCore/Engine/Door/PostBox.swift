import FKMiddleware

/// The engine's side of the mailbox: requests that were read and have not begun. Confined to the engine.
struct PostBox {
    let mailbox: Mailbox
    /// Requests of other processes that have not begun yet.
    private var messages: [(MessageID, Result<EngineMessage, DownloadError>)] = []
    private var isHandling = false
    private(set) var hasRead = false
    /// True once the requests that were in the mailbox at the start have begun.
    private var hasHandledLeftovers = false
    private var whenLeftoversHandled: [CheckedContinuation<Void, Never>] = []

    init(_ mailbox: Mailbox) { self.mailbox = mailbox }

    /// Reads the requests posted since the last call. Returns true if the caller must begin to handle them.
    ///
    /// - Throws: `.disk` if the mailbox cannot be listed.
    mutating func read() throws -> Bool {
        mailbox.writeReplies()
        hasRead = true
        if mailbox.hasNews() { messages += try mailbox.drain() }
        guard !isHandling else { return false }
        if messages.isEmpty {
            hasHandledLeftovers = true
            return false
        }
        isHandling = true
        return true
    }

    /// The next requests to handle; nil if there are none.
    mutating func drainMessages() -> [(MessageID, Result<EngineMessage, DownloadError>)]? {
        defer { messages = [] }
        return messages.isEmpty ? nil : messages
    }

    /// Ends the handling, and releases those who wait for the requests of earlier engines.
    mutating func endHandling() {
        isHandling = false
        hasHandledLeftovers = true
        whenLeftoversHandled.forEach { $0.resume() }
        whenLeftoversHandled = []
    }

    /// True while requests posted under earlier engines are being handled.
    var isHandlingLeftovers: Bool { !hasHandledLeftovers && isHandling }

    mutating func waitForLeftovers(_ waiter: CheckedContinuation<Void, Never>) { whenLeftoversHandled.append(waiter) }
}
