import FKMiddleware

/// The mailbox as its engine sees it: what was read and has not begun yet. Confined to the engine.
struct PostBox {
    let mailbox: Mailbox
    /// Requests of other processes that have not begun yet.
    private var messages: [(MessageID, Result<EngineRequest, DownloadError>)] = []
    private var isHandling = false
    private(set) var hasRead = false
    /// What was in the mailbox when this engine began is under way.
    private var hasHandledLeftovers = false
    private var whenLeftoversHandled: [CheckedContinuation<Void, Never>] = []

    init(_ mailbox: Mailbox) { self.mailbox = mailbox }

    /// Takes what has come since the last look. Returns true when somebody has to begin handling it.
    mutating func read() -> Bool {
        mailbox.writeReplies()
        hasRead = true
        if mailbox.hasNews() { messages += mailbox.take() }
        guard !isHandling else { return false }
        if messages.isEmpty {
            hasHandledLeftovers = true
            return false
        }
        isHandling = true
        return true
    }

    /// The next requests to handle; nil when there are none.
    mutating func takeMessages() -> [(MessageID, Result<EngineRequest, DownloadError>)]? {
        defer { messages = [] }
        return messages.isEmpty ? nil : messages
    }

    mutating func endHandling() {
        isHandling = false
        hasHandledLeftovers = true
        whenLeftoversHandled.forEach { $0.resume() }
        whenLeftoversHandled = []
    }

    /// Requests that earlier engines have left are being handled.
    var isHandlingLeftovers: Bool { !hasHandledLeftovers && isHandling }

    mutating func waitForLeftovers(_ waiter: CheckedContinuation<Void, Never>) { whenLeftoversHandled.append(waiter) }
}
