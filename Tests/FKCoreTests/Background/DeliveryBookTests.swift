import TestSupport
import Testing

@testable import FKEngine

@Suite("The book of pieces")
struct DeliveryBookTests {
    static let id = TaskID(url: "http://h.example/a")
    private static func key(_ number: Int64, condition: UInt64 = 1) -> PieceKey {
        PieceKey(task: id, generation: 1, form: 1, condition: condition, start: number * 10, end: number * 10 + 10)
    }
    private static func piece(_ key: PieceKey) -> Delivery {
        let fields = [
            HeaderField("Content-Range", "bytes \(key.start)-\(key.end! - 1)/100"), .init("ETag", "\"a\""),
        ]
        return Delivery(key: key, head: ResponseHead(status: 206, fields: fields, url: "u"), length: 10)
    }
    private static func ask(_ number: Int64, ahead: Int64 = 0, condition: UInt64 = 1) -> DeliveryAsk {
        DeliveryAsk(
            key: key(number, condition: condition), ifRange: "\"a\"",
            ahead: (0..<ahead).map { key(number + 1 + $0, condition: condition) })
    }

    @Test("nothing is requested before the pieces of earlier processes are known, and none of them twice")
    func adoption() {
        var book = DeliveryBook()
        book.restore([Self.piece(Self.key(2))])
        #expect(book.ask(1, Self.ask(1, ahead: 2)) == [])
        #expect(book.adopted([Self.key(1)]) == [.start(1, Self.key(3))])
        #expect(book.flying == [Self.key(1), Self.key(3)])
        #expect(book.finished(Self.piece(Self.key(1))) == [.play(1, Self.piece(Self.key(1)), skip: 0)])
        #expect(book.settle(Self.key(1), isUsed: true) == [.discard(Self.key(1))])
        #expect(book.ask(2, Self.ask(2)) == [.play(2, Self.piece(Self.key(2)), skip: 0)])
        #expect(book.settle(Self.key(2), isUsed: false) == [])
        #expect(book.ask(3, Self.ask(2)) == [.play(3, Self.piece(Self.key(2)), skip: 0)])
    }

    @Test("requests of another version are ended, and the failure of a piece behind is no failure of the attempt")
    func versions() {
        var book = DeliveryBook()
        #expect(book.adopted([Self.key(1, condition: 9), Self.key(2)]) == [])
        #expect(book.ask(1, Self.ask(1)) == [.cancel([Self.key(1, condition: 9)]), .start(1, Self.key(1))])
        let error = DownloadError(.connectionLost, "lost")
        #expect(book.failed(Self.key(2), error) == [])
        #expect(book.failed(Self.key(1), error) == [.fail(1, error)])
        #expect(book.flying.isEmpty && !book.isWaiting(Self.id))
        #expect(book.ask(2, Self.ask(1, ahead: 1)) == [.start(2, Self.key(1)), .start(2, Self.key(2))])
        #expect(book.withdraw(2, of: Self.id, keepsFlying: true) == [])
        #expect(book.holds(Self.id) && book.hasAnswer(to: Self.ask(1)) && !book.hasAnswer(to: Self.ask(3)))
        #expect(book.cancel(Self.id) == [.cancel([Self.key(1), Self.key(2)])])
        #expect(!book.holds(Self.id))
    }

    /// Random events in random order.
    @Test(
        "no piece is in flight twice or while it is kept, each ask ends once, and no file is dropped while it plays",
        arguments: FuzzRun.shards)
    func courses(_ shard: Int) async throws {
        try await FuzzRun("delivery book", usual: 4_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var course = Course()
            for _ in 0..<60 {
                if let fault = course.step(&random) { return fault }
            }
            return nil
        }
    }

    private struct Course {
        var book = DeliveryBook()
        var open: Set<Int> = []
        var playing: [Int: PieceKey] = [:]
        var flying: Set<PieceKey> = []
        var last = 0

        mutating func step(_ random: inout SeededRandom) -> String? {
            let key = DeliveryBookTests.key(Int64(random.below(5)), condition: UInt64(random.below(2)))
            var actions: [DeliveryBook.Action] = []
            switch random.below(9) {
            case 0:
                if book.isAdopted { break }
                let keys: Set<PieceKey> = random.oneIn(2) && book.kept[key] == nil ? [key] : []
                flying.formUnion(keys)
                actions = book.adopted(keys)
            case 1...3:
                last += 1
                open.insert(last)
                let ask = DeliveryBookTests.ask(key.start / 10, ahead: Int64(random.below(3)), condition: key.condition)
                actions = book.ask(last, ask)
            case 4:
                // Also one that was never requested, or was delivered before.
                guard book.kept[key] == nil else { break }
                flying.remove(key)
                actions = book.finished(DeliveryBookTests.piece(key))
            case 5:
                flying.remove(key)
                actions = book.failed(key, DownloadError(.connectionLost, "lost"))
            case 6:
                guard let number = open.min() else { break }
                open.remove(number)
                actions = book.withdraw(number, of: DeliveryBookTests.id, keepsFlying: random.oneIn(2))
            case 7:
                guard let (number, key) = playing.min(by: { $0.key < $1.key }) else { break }
                playing[number] = nil
                actions = book.settle(key, isUsed: random.oneIn(2))
            default: actions = book.apply { _ in random.pick([.expected, .rests, .unwanted]) }
            }
            return perform(actions) ?? check()
        }

        private mutating func perform(_ actions: [DeliveryBook.Action]) -> String? {
            for action in actions {
                switch action {
                case .start(let number, let key):
                    if !book.isAdopted { return "\(key) was requested before the adoption" }
                    if !flying.insert(key).inserted { return "\(key) was requested twice" }
                    if number > last { return "there is no ask \(number)" }
                case .cancel(let keys):
                    if !flying.isSuperset(of: keys) { return "a piece that is not in flight was ended" }
                    flying.subtract(keys)
                case .discard(let key):
                    if playing.values.contains(key) { return "\(key) was discarded while it plays" }
                case .play(let number, let piece, _):
                    guard open.remove(number) != nil else { return "ask \(number) has ended already" }
                    if playing.values.contains(piece.key) { return "\(piece.key) plays twice" }
                    playing[number] = piece.key
                case .fail(let number, _):
                    guard open.remove(number) != nil else { return "ask \(number) has ended already" }
                }
            }
            return nil
        }

        private func check() -> String? {
            if flying != book.flying { return "in flight: \(flying), and not \(book.flying)" }
            if !book.flying.isDisjoint(with: book.kept.keys) { return "a piece is kept and in flight" }
            for key in playing.values where book.kept[key] == nil { return "\(key) plays and is gone" }
            if open.isEmpty == book.isWaiting(DeliveryBookTests.id) { return "asks: \(open)" }
            return nil
        }
    }
}
