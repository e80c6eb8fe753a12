import FKCore
import FKMiddleware
import Foundation

/// Requests and their answers: from bytes to calls, and from results to bytes.
extension RPCService {
    /// Answers the body of a POST or the message of a WebSocket: a call, or an array of calls.
    package func handle(_ body: [UInt8], from caller: RPCCaller = RPCCaller()) async -> RPCAnswer {
        guard let json = JSON(parsing: body), json.object != nil || json.array != nil else {
            return await answer(Reply(id: .null, .failure(.parse)))
        }
        return await handle(json, from: caller)
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
            else { return await answer(Reply(id: .null, .failure(.parse))) }
            if item("method") == nil { return await handle(params, from: caller) }
            members.append(.init("params", params))
        }
        return await handle(.object(members), from: caller)
    }

    private func handle(_ json: JSON, from caller: RPCCaller) async -> RPCAnswer {
        await refresh()
        return await Self.$budget.withValue(AnswerBudget()) { await answer(to: json, from: caller) }
    }

    private func answer(to json: JSON, from caller: RPCCaller) async -> RPCAnswer {
        guard let calls = json.array else { return await answer(await reply(to: json, from: caller)) }
        var replies: [Reply] = []
        for call in calls where call.object != nil { replies.append(await reply(to: call, from: caller)) }
        if replies.contains(where: \.isRefused) { await refuse() }
        return RPCAnswer(status: 200, body: JSON.array(replies.map(\.json)).bytes)
    }

    /// The result of one call.
    struct Reply {
        let id: JSON
        let result: Result<JSON, RPCError>
        /// True if this call, or one inside it, had no right secret.
        var isRefused: Bool

        init(id: JSON, _ result: Result<JSON, RPCError>, isRefused: Bool = false) {
            self.id = id
            self.result = result
            self.isRefused = isRefused
        }

        var json: JSON {
            switch result {
            case .success(let value): .members(["id": id, "jsonrpc": "2.0", "result": value])
            case .failure(let error): .members(["id": id, "jsonrpc": "2.0", "error": error.json])
            }
        }
    }

    private func answer(_ reply: Reply) async -> RPCAnswer {
        if reply.isRefused { await refuse() }
        var status = 200
        if case .failure(let error) = reply.result { status = error.status }
        return RPCAnswer(status: status, body: reply.json.bytes)
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
        let (result, isRefused) = await execute(method, params, from: caller)
        return Reply(id: id, result, isRefused: isRefused)
    }

    private func execute(
        _ method: String, _ params: [JSON], from caller: RPCCaller
    ) async -> (Result<JSON, RPCError>, isRefused: Bool) {
        do throws(RPCError) {
            guard Self.budget.hasBytes else { throw Self.tooLong }
            if method == "system.multicall" { return try await multicall(params, from: caller) }
            if let value = Self.lists[method] { return (.success(try spend(value)), false) }
            guard let params = try admit(method, params, from: caller) else {
                // The page asks once without a secret, to learn whether one is needed.
                return (.failure(.unauthorized), !method.hasPrefix("fk.") || params.first?.string != nil)
            }
            if method.hasPrefix("fk.") {
                return (.success(try spend(await page(method, params, from: caller.peer))), false)
            }
            return (.success(try spend(await aria2(method, Parameters(params)))), false)
        } catch {
            return (.failure(error), false)
        }
    }

    /// Checks the caller's rights.
    ///
    /// - Returns: the parameters without the secret; nil without the right secret.
    private func admit(_ method: String, _ params: [JSON], from caller: RPCCaller) throws(RPCError) -> [JSON]? {
        var params = params
        guard isAuthorized(&params) else { return nil }
        guard caller.mayChange || settings.secret != nil || Self.isAsking(method) else {
            throw RPCError(
                "Without a secret a browser changes nothing with \(method) this way: use POST with an Origin.")
        }
        if let peer = caller.peer { peers[peer]?.isAuthenticated = true }
        return params
    }

    static let tooLong = RPCError(
        "The answer would be longer than \(maxAnswer >> 20) MiB: ask for fewer tasks at once.")

    /// Bounds the answer to one request.
    ///
    /// - Returns: the result, written.
    private func spend(_ result: JSON) throws(RPCError) -> JSON {
        let bytes = result.bytes
        guard Self.budget.take(bytes: bytes.count) else { throw Self.tooLong }
        return .text(bytes)
    }

    /// Takes the secret off, whether one is needed or not.
    private func isAuthorized(_ params: inout [JSON]) -> Bool {
        var given = ""
        if let first = params.first?.string, first.hasPrefix("token:") {
            given = String(first.dropFirst(6))
            params.removeFirst()
        }
        return settings.secret.map { SecretCheck.isEqual(given, $0) } ?? true
    }

    private func multicall(
        _ params: [JSON], from caller: RPCCaller
    ) async throws(RPCError) -> (Result<JSON, RPCError>, isRefused: Bool) {
        var params = params
        // aria2 takes no secret here, but clients send one.
        if let first = params.first?.string, first.hasPrefix("token:") { params.removeFirst() }
        var results: [JSON] = []
        var isRefused = false
        var downloads: [Parameters] = []
        for call in try Parameters(params).array(0) {
            let method = call["methodName"]?.string ?? ""
            let params = call["params"]?.array ?? []
            if method == "aria2.addUri", Self.budget.hasBytes, let own = try? admit(method, params, from: caller) {
                downloads.append(Parameters(own))
                continue
            }
            results += await addURIs(downloads).map(Self.item)
            downloads = []
            if let fault = Self.fault(in: call) {
                results.append(fault.json)
                continue
            }
            let (result, wasRefused) = await execute(method, params, from: caller)
            isRefused = isRefused || wasRefused
            results.append(Self.item(result))
        }
        results += await addURIs(downloads).map(Self.item)
        return (.success(.array(results)), isRefused)
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
