import FKCore
import FKMiddleware

/// What keys do.
extension WatchModel {
    /// The keys, for the help page and the last line.
    static let help: [(keys: String, meaning: String)] = [
        ("up, down, k, j", "select a task; PgUp, PgDn, Home, End, g, G"),
        ("Enter", "details of the task: history, connections; Esc goes back"),
        ("space", "suspend a running or waiting task, resume or retry another one"),
        ("r", "retry a failed or cancelled task"),
        ("c", "cancel: stop and delete unfinished bytes; asks y/n"),
        ("f", "forget the task: its finished file stays; asks y/n before unfinished bytes are deleted"),
        ("+, -", "raise or lower the rate limit of all tasks, or of the chosen barrel"),
        ("/", "filter by text in name, URL, state or barrel; Enter ends, Esc clears"),
        ("b", "sums by barrel; Enter shows the members"),
        ("?", "this help"),
        ("q", "quit; the downloads go on"),
    ]

    /// Takes a key.
    ///
    /// - Parameter rows: the rows of the terminal.
    mutating func handle(_ key: WatchKey, rows: Int) -> [Effect] {
        say(nil)
        if key == .redraw { return [.redraw] }
        if let prompt { return answer(prompt, key) }
        switch (page, key) {
        case (.help, _):
            page = .list
            return key == .character("q") ? [.quit] : []
        case (_, .character("q")): return [.quit]
        case (_, .character("?")): open(.help)
        case (_, .character("b")): open(page == .barrels ? .list : .barrels)
        case (_, .character("+")), (_, .character("=")): return limit(isRaised: true)
        case (_, .character("-")): return limit(isRaised: false)
        case (.barrels, _): barrelKey(key, page: rows - 4)
        case (.details, .escape), (.details, .enter): open(.list)
        case (.details, .up), (.details, .character("k")): top = max(0, top - 1)
        case (.details, .down), (.details, .character("j")): top += 1
        case (.details, .pageUp): top = max(0, top - (rows - 4))
        case (.details, .pageDown): top += rows - 4
        case (_, .character("/")) where page == .list: prompt = .filter(filter)
        default: return taskKey(key, page: max(1, rows - 4))
        }
        return []
    }

    private mutating func open(_ page: Page) {
        self.page = page
        top = 0
    }

    /// Keys about the selected task.
    private mutating func taskKey(_ key: WatchKey, page rows: Int) -> [Effect] {
        let index = selectedIndex() ?? 0
        switch key {
        case .up, .character("k"): select(index: index - 1)
        case .down, .character("j"): select(index: index + 1)
        case .pageUp: select(index: index - rows)
        case .pageDown: select(index: index + rows)
        case .home, .character("g"): select(index: 0)
        case .end, .character("G"): select(index: .max)
        case .escape: setFilter("")
        default: break
        }
        guard let info = selected() else { return [] }
        // From the first key on the selection stays at its task, whatever comes to its line.
        if page == .list { selection = info.id }
        switch key {
        case .enter:
            open(.details(info.id))
            show(details: [], of: info.id)
            return [.load(info.id)]
        case .character(" "): return [.request(EngineMessage(.toggle(.id(info.id))))]
        case .character("r"): return [.request(EngineMessage(.verb(.retry, .id(info.id))))]
        case .character("f"):
            guard info.losesBytesWhenForgotten else { return [.request(EngineMessage(.verb(.forget, .id(info.id))))] }
            prompt = .confirm(.forget, info.id, name: info.shownName)
        case .character("c"):
            if info.state == .complete || info.state == .cancel {
                say("\(info.shownName): is \(info.state == .complete ? "complete" : "cancelled") already")
            } else {
                prompt = .confirm(.cancel, info.id, name: info.shownName)
            }
        default: break
        }
        return []
    }

    private mutating func barrelKey(_ key: WatchKey, page rows: Int) {
        let sums = barrelSums()
        let last = max(0, sums.count - 1)
        switch key {
        case .up, .character("k"): barrelIndex = max(0, barrelIndex - 1)
        case .down, .character("j"): barrelIndex = min(last, barrelIndex + 1)
        case .pageUp: barrelIndex = max(0, barrelIndex - rows)
        case .pageDown: barrelIndex = min(last, barrelIndex + rows)
        case .home, .character("g"): barrelIndex = 0
        case .end, .character("G"): barrelIndex = last
        case .enter:
            if sums.indices.contains(barrelIndex) { setFilter("", barrel: sums[barrelIndex].name) }
            open(.list)
        case .escape: open(.list)
        default: break
        }
    }

    private mutating func limit(isRaised: Bool) -> [Effect] {
        if let name = chosenBarrel { return [.limitBarrel(name, isRaised: isRaised, rate: rate(ofBarrel: name))] }
        let rate = isRaised ? RateSteps.higher(than: limit) : RateSteps.lower(than: limit, rate: meters.rate ?? 0)
        say("rate limit: \(rate.map { Formatting.rate(Double($0)) } ?? "none")")
        return [.request(EngineMessage(.limit(rate: rate, barrel: nil)))]
    }

    private mutating func answer(_ prompt: Prompt, _ key: WatchKey) -> [Effect] {
        switch (prompt, key) {
        case (.filter, .enter): self.prompt = nil
        case (.filter, .escape):
            self.prompt = nil
            setFilter("")
        case (.filter(let text), .backspace): edit(String(text.dropLast()))
        case (.filter(let text), .character(let character)): edit(text + String(character))
        case (.confirm(let verb, let id, _), .character("y")), (.confirm(let verb, let id, _), .character("Y")):
            self.prompt = nil
            return [.request(EngineMessage(.verb(verb, .id(id))))]
        case (.confirm, .character("n")), (.confirm, .character("N")), (.confirm, .escape), (.confirm, .enter):
            self.prompt = nil
        default: break
        }
        return []
    }

    private mutating func edit(_ text: String) {
        prompt = .filter(text)
        setFilter(text, barrel: barrel)
    }
}
