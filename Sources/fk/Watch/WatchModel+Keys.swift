import FKCore
import FKMiddleware

extension WatchModel {
    /// The keys, for the help page and the last line.
    static let help: [(keys: String, meaning: String)] = [
        ("up, down, k, j", "select a task; PgUp, PgDn, g, G for the ends; or the mouse"),
        ("Enter", "details of the task; Esc goes back"),
        ("space", "suspend a running or waiting task, resume or retry another"),
        ("v, A", "mark a task, or all shown, for the next verb; Esc unmarks"),
        ("J, K", "move a waiting task down or up in the queue"),
        ("s", "sort by state, name, size, rate or age"),
        ("x", "start what waits, if no process runs the downloads"),
        ("r", "retry a failed or cancelled task"),
        ("c", "cancel: stop and delete unfinished bytes; asks y/n"),
        ("f", "forget: a finished file stays; asks before bytes go"),
        ("+, -", "raise or lower the limit of all tasks or of the barrel"),
        ("/", "filter by name, URL, state or barrel; Esc clears"),
        ("b", "sums by barrel; Enter shows the members"),
        ("?", "this help"),
        ("q", "quit; the downloads go on"),
    ]

    /// - Parameter rows: the rows of the terminal.
    mutating func handle(_ key: WatchKey, rows: Int) -> [Effect] {
        say(nil)
        if key == .redraw { return [.redraw] }
        if let prompt { return answer(prompt, key) }
        switch (page, key) {
        case (_, .character("q")): return [.quit]
        case (.details, .up), (.details, .character("k")), (.help, .up), (.help, .character("k")): top = max(0, top - 1)
        case (.details, .down), (.details, .character("j")), (.help, .down), (.help, .character("j")): top += 1
        case (.details, .pageUp), (.help, .pageUp): top = max(0, top - (rows - 4))
        case (.details, .pageDown), (.help, .pageDown): top += rows - 4
        case (.help, _): open(.list)
        case (_, .character("?")): open(.help)
        case (_, .character("b")): open(page == .barrels ? .list : .barrels)
        case (_, .character("+")), (_, .character("=")): return limit(isRaised: true)
        case (_, .character("-")): return limit(isRaised: false)
        case (.barrels, _): barrelKey(key, page: rows - 4)
        case (.details, .escape), (.details, .enter): open(.list)
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
        case .wheelUp: select(index: index - 3)
        case .wheelDown: select(index: index + 3)
        case .click(let row):
            guard page == .list, row >= firstRow, row < firstRow + rows else { return [] }
            select(index: top + row - firstRow)
        case .up, .character("k"): select(index: index - 1)
        case .down, .character("j"): select(index: index + 1)
        case .pageUp: select(index: index - rows)
        case .pageDown: select(index: index + rows)
        case .home, .character("g"): select(index: 0)
        case .end, .character("G"): select(index: .max)
        case .escape:
            if marked.isEmpty { setFilter("") }
            marked = []
        case .character("s"):
            let all = Order.allCases
            sorting = all[(all.firstIndex(of: sorting)! + 1) % all.count]
            say("sorted by \(sorting.rawValue)")
        case .character("A"):
            let ids = Set(shown())
            marked = marked == ids ? [] : ids
        case .character("x"): return start()
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
        case .character("v"):
            if marked.remove(info.id) == nil { marked.insert(info.id) }
            select(index: index + 1)
        case .character("J"), .character("K"):
            guard let changes = moveInQueue(down: key == .character("J")) else {
                say(
                    sorting == .state
                        ? "\(info.shownName): only a waiting task moves, among the waiting ones"
                        : "The queue is moved in the order by state: press s")
                return []
            }
            return [.request(EngineMessage(.change(changes)))]
        case .character(" "):
            guard page != .list || marked.isEmpty else { return verbs { $0.state.toggleVerb } }
            return [.request(EngineMessage(.toggle(.id(info.id))))]
        case .character("r"): return verbs { _ in .retry }
        case .character("f"):
            guard let name = subject(where: \.losesBytesWhenForgotten) else { return verbs { _ in .forget } }
            prompt = .confirm(.forget, acted.map(\.id), name: name)
        case .character("c"):
            if let name = subject(where: { $0.state != .complete && $0.state != .cancel }) {
                prompt = .confirm(.cancel, acted.map(\.id), name: name)
            } else {
                say("\(info.shownName): is \(info.state == .complete ? "complete" : "cancelled") already")
            }
        default: break
        }
        return []
    }

    /// The tasks on which a verb acts: the marked ones, else the selected one.
    private var acted: [DownloadInfo] {
        mutating get {
            if page == .list, !marked.isEmpty {
                return shown().filter(marked.contains).compactMap { watched.tasks[$0]?.info }
            }
            return selected().map { [$0] } ?? []
        }
    }

    /// The name for a question about those of them that meet a condition; nil if none does.
    private mutating func subject(where isMet: (DownloadInfo) -> Bool) -> String? {
        let all = acted
        guard all.contains(where: isMet) else { return nil }
        return all.count == 1 ? all[0].shownName : "\(all.count) tasks"
    }

    private mutating func verbs(_ verb: (DownloadInfo) -> Verb?) -> [Effect] {
        let choices = acted.compactMap { info in verb(info).map { (id: info.id, verb: $0) } }
        if choices.count == 1 { return [.request(EngineMessage(.verb(choices[0].verb, .id(choices[0].id))))] }
        return choices.isEmpty
            ? [] : [.request(EngineMessage(.chosen(choices.map { .init(id: $0.id, verb: $0.verb) })))]
    }

    private mutating func start() -> [Effect] {
        if case .some(.some(let pid)) = watched.owner { say("Process \(pid) runs the downloads already.") }
        guard watched.owner == .some(nil) else { return [] }
        guard watched.counts[.idle, default: 0] > 0 else {
            say("Nothing waits.")
            return []
        }
        return [.start]
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

    private func limit(isRaised: Bool) -> [Effect] {
        let name = chosenBarrel
        let present = name.map { rate(ofBarrel: $0) } ?? watched.meters.rate ?? 0
        return [.limit(barrel: name, isRaised: isRaised, rate: present)]
    }

    private mutating func answer(_ prompt: Prompt, _ key: WatchKey) -> [Effect] {
        switch (prompt, key) {
        case (.filter, .enter): self.prompt = nil
        case (.filter, .escape):
            self.prompt = nil
            setFilter("")
        case (.filter(let text), .backspace): edit(String(text.dropLast()))
        case (.filter(let text), .character(let character)): edit(text + String(character))
        case (.confirm(let verb, let ids, _), .character("y")), (.confirm(let verb, let ids, _), .character("Y")):
            self.prompt = nil
            guard ids.count > 1 else { return ids.map { .request(EngineMessage(.verb(verb, .id($0)))) } }
            return [.request(EngineMessage(.chosen(ids, verb)))]
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
