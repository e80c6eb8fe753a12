import FKCore
import FKMiddleware
import Foundation

/// Requests and their answers: from bytes to calls, and from results to bytes.
extension RPCService {
    /// Answers the body of a POST or the message of a WebSocket: a call, or an array of calls.
    package func handle(_ body: [UInt8], from caller: RPCCaller = RPCCaller()) async -> RPCAnswer {
        let json = JSON(parsing: body)
        guard let json, json.object != nil || json.array != nil else {
            freedMemory.record(bytes: body.count)
            // As aria2 answers a text and null.
            return RPCAnswer(json == .null || json?.string != nil ? .invalidRequest : .parse)
        }
        return await handle(json, size: body.count, from: caller)
    }

    /// Answers a GET: `method`, `id` and `params` (base64 of a JSON array) in the query.
    ///
    /// - Parameter query: the items of the query, percent-decoded.
    package func handle(
        query: [(name: String, value: String)], from caller: RPCCaller = RPCCaller()
    ) async -> RPCAnswer {
        func item(_ name: String) -> String? { query.last { $0.name == name }?.value }
        var members: [JSON.Member] = [.init("id", .string(item("id") ?? ""))]
        if let method = item("method") { members.append(.init("method", .string(method))) }
        if let text = item("params") {
            // A plus sign in a query may have become a space.
            guard let data = Data(base64Encoded: text.replacingOccurrences(of: " ", with: "+")),
                let params = JSON(parsing: Array(data))
            else { return RPCAnswer(.parse) }
            if item("method") == nil {
                guard params.object != nil || params.array != nil else { return RPCAnswer(.parse) }
                return await handle(params, size: data.count, from: caller)
            }
            members.append(.init("params", params))
        }
        return await handle(.object(members), size: 0, from: caller)
    }

    /// - Parameter size: the length of the request in bytes.
    private func handle(_ json: JSON, size: Int, from caller: RPCCaller) async -> RPCAnswer {
        await refresh()
        let budget = AnswerBudget(request: size)
        if settings.secret == nil { budget.admit() }
        let reply = await Self.$budget.withValue(budget) { await answer(to: json, from: caller) }
        freedMemory.record(bytes: size + reply.body.count)
        return reply
    }

    /// A batch ends at the first call without the right secret, so that a request is one guess, and where its answer is full.
    private func answer(to json: JSON, from caller: RPCCaller) async -> RPCAnswer {
        guard let calls = json.array else { return await answer(await reply(to: json, from: caller)) }
        var body: [UInt8] = [UInt8(ascii: "[")]
        for call in calls where call.object != nil {
            let reply = await reply(to: call, from: caller)
            if body.count > 1 { body.append(UInt8(ascii: ",")) }
            let bytes = reply.json.bytes
            let isLast = !reply.isWithin(Self.budget, bytes.count + 1)
            body += isLast ? Reply(id: reply.id, .failure(Self.tooLong)).json.bytes : bytes
            if reply.outcome.isRefused { await refuse() }
            if isLast || reply.outcome.endsBatch { break }
        }
        body.append(UInt8(ascii: "]"))
        return RPCAnswer(status: 200, body: body, isAdmitted: Self.budget.isAdmitted)
    }

    struct Outcome {
        var result: Result<JSON, RPCError>
        /// True if this call, or one inside it, had a wrong secret, or none where one is expected.
        var isRefused = false
        /// True if no further call of the request is performed.
        var endsBatch = false
        /// True if the result is taken from the budget already.
        var isSpent = false

        init(_ result: Result<JSON, RPCError>) { self.result = result }

        /// A call without the right secret.
        ///
        /// - Parameter isGuess: false for the page's first call, which asks whether a secret is needed.
        static func unauthorized(isGuess: Bool) -> Outcome {
            var outcome = Outcome(.failure(.unauthorized))
            outcome.isRefused = isGuess
            outcome.endsBatch = true
            return outcome
        }
    }

    struct Reply {
        let id: JSON
        let outcome: Outcome

        init(id: JSON, _ outcome: Outcome) {
            self.id = id
            self.outcome = outcome
        }

        init(id: JSON, _ result: Result<JSON, RPCError>) { self.init(id: id, Outcome(result)) }

        var json: JSON {
            switch outcome.result {
            case .success(let value): .members(["id": id, "jsonrpc": "2.0", "result": value])
            case .failure(let error): .members(["id": id, "jsonrpc": "2.0", "error": error.json])
            }
        }

        /// Spends the reply from the budget. What is around the items of a multicall is at most as long as the call itself.
        ///
        /// - Parameter count: its length in bytes.
        /// - Returns: false if that is too much.
        func isWithin(_ budget: AnswerBudget, _ count: Int) -> Bool { outcome.isSpent || budget.spend(bytes: count) }
    }

    private func answer(_ reply: Reply) async -> RPCAnswer {
        var reply = reply
        var bytes = reply.json.bytes
        if !reply.isWithin(Self.budget, bytes.count) {
            reply = Reply(id: reply.id, .failure(Self.tooLong))
            bytes = reply.json.bytes
        }
        if reply.outcome.isRefused { await refuse() }
        var status = 200
        if case .failure(let error) = reply.outcome.result { status = error.status }
        return RPCAnswer(status: status, body: bytes, isAdmitted: Self.budget.isAdmitted)
    }

    /// A wrong secret costs time. The first one is logged, so that guesses do not fill the log.
    private func refuse() async {
        refusals += 1
        if refusals == 1 { settings.log("a call was refused: its secret is missing or wrong") }
        await settings.refusalDelay()
    }

    private func reply(to call: JSON, from caller: RPCCaller) async -> Reply {
        guard let id = call["id"] else { return Reply(id: .null, .failure(.invalidRequest)) }
        guard let method = call["method"]?.string else { return Reply(id: id, .failure(.invalidRequest)) }
        var params: [JSON] = []
        if let given = call["params"] {
            guard let values = given.array else { return Reply(id: id, .failure(.invalidParams)) }
            params = values
        }
        return Reply(id: id, await execute(method, params, from: caller))
    }

    private func execute(_ method: String, _ params: [JSON], from caller: RPCCaller) async -> Outcome {
        do throws(RPCError) {
            if method == "system.multicall" { return try await multicall(params, from: caller) }
            if let value = Self.lists[method] { return Outcome(.success(value)) }
            guard let params = try admit(method, params, from: caller) else {
                // The page asks once without a secret, to learn whether one is needed.
                return .unauthorized(isGuess: !method.hasPrefix("fk.") || params.first?.string != nil)
            }
            if method.hasPrefix("fk.") { return Outcome(.success(try await page(method, params, from: caller.peer))) }
            return Outcome(.success(try await aria2(method, Parameters(params))))
        } catch {
            return Outcome(.failure(error))
        }
    }

    /// - Returns: the parameters without the secret; nil without the right secret.
    private func admit(_ method: String, _ params: [JSON], from caller: RPCCaller) throws(RPCError) -> [JSON]? {
        var params = params
        guard isAuthorized(&params) else { return nil }
        guard caller.mayChange || settings.secret != nil || Self.isAsking(method) else {
            throw RPCError(
                "Without a secret a browser changes nothing with \(method) this way: use POST with an Origin.")
        }
        if let peer = caller.peer { peers[peer]?.isAuthenticated = true }
        Self.budget.admit()
        return params
    }

    static let tooLong = RPCError(
        "The answer would be longer than \(maxAnswer >> 20) MiB: ask for fewer tasks at once.")

    /// Removes the secret, whether one is needed or not.
    private func isAuthorized(_ params: inout [JSON]) -> Bool {
        var given = ""
        if let first = params.first?.string, first.hasPrefix("token:") {
            given = String(first.dropFirst(6))
            params.removeFirst()
        }
        return settings.secret.map { SecretCheck.isEqual(given, $0) } ?? true
    }

    private func multicall(_ params: [JSON], from caller: RPCCaller) async throws(RPCError) -> Outcome {
        var params = params
        // aria2 takes no secret here, but clients send one.
        if let first = params.first?.string, first.hasPrefix("token:") { params.removeFirst() }
        var items = MulticallItems(budget: Self.budget)
        var downloads: [Parameters] = []
        for call in try Parameters(params).array(0) {
            let method = call["methodName"]?.string ?? ""
            let params = call["params"]?.array ?? []
            if method == "aria2.addUri", let own = try? admit(method, params, from: caller) {
                downloads.append(Parameters(own))
                continue
            }
            for result in await addURIs(downloads) { items.append(Outcome(result)) }
            downloads = []
            if items.isOver { break }
            if let fault = Self.fault(in: call) {
                items.append(Outcome(.failure(fault)))
            } else {
                items.append(await execute(method, params, from: caller))
            }
            if items.isOver { break }
        }
        for result in await addURIs(downloads) { items.append(Outcome(result)) }
        return items.outcome
    }

    /// The answers to the calls of a multicall. They end at the first call without the right secret, and where the answer is full.
    private struct MulticallItems {
        let budget: AnswerBudget
        private var written: [JSON] = []
        private var isRefused = false
        private(set) var isOver = false

        init(budget: AnswerBudget) { self.budget = budget }

        mutating func append(_ outcome: Outcome) {
            guard !isOver else { return }
            let bytes = RPCService.item(outcome.result).bytes
            let isFull = !budget.spend(bytes: bytes.count + 1)
            written.append(isFull ? RPCService.tooLong.json : .text(bytes))
            isRefused = isRefused || outcome.isRefused
            isOver = isFull || outcome.endsBatch
        }

        var outcome: Outcome {
            var outcome = Outcome(.success(.array(written)))
            outcome.isRefused = isRefused
            outcome.endsBatch = isOver
            outcome.isSpent = true
            return outcome
        }
    }

    private static func fault(in call: JSON) -> RPCError? {
        guard call.object != nil else { return RPCError("system.multicall expected struct.") }
        guard let method = call["methodName"]?.string else { return RPCError("Missing methodName.") }
        return method == "system.multicall" ? RPCError("Recursive system.multicall forbidden.") : nil
    }

    /// A result in the answer to a multicall.
    private static func item(_ result: Result<JSON, RPCError>) -> JSON {
        switch result {
        case .success(let value): .array([value])
        case .failure(let error): error.json
        }
    }
}
