import FKMiddleware

/// Creates a barrel, or replaces the settings of an existing one.
package struct CreateBarrel: PromptRequest {
    package static let kind = "createBarrel"
    package let name: String
    package var options: BarrelOptions

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.control.createBarrel(name, options: options)
    }
}

/// Makes the selected tasks members of a barrel, which is created if missing. The reply is the number of new members.
package struct JoinBarrel: PromptRequest {
    package static let kind = "join"
    let selectors: [TaskSelector]
    let barrel: String

    private enum CodingKeys: String, CodingKey { case selectors = "_0", barrel }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> Int {
        try engine.control.join(selectors, barrel: barrel)
    }
}

/// Removes members from a barrel, by URLs or whole ids. Their tasks stay.
package struct LeaveBarrel: PromptRequest {
    package static let kind = "removeFromBarrel"
    let name: String
    let urls: [String]

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.control.remove(urls, fromBarrel: name)
    }
}

/// Deletes a barrel. Its tasks stay.
package struct DeleteBarrel: PromptRequest {
    package static let kind = "deleteBarrel"
    let name: String

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.control.deleteBarrel(name)
    }
}

/// Changes `Configure.maxAction` (tasks at once) and `Configure.rateLimit` (bytes a second; 0 for no limit). Nil keeps the
/// present value.
package struct SetLimits: PromptRequest {
    package static let kind = "setLimits"
    let maxAction: Int?
    let rateLimit: Int64?

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        var changed = engine.currentConfigure
        if let maxAction { changed.maxAction = maxAction }
        if let rateLimit { changed.rateLimit = rateLimit == 0 ? nil : rateLimit }
        try engine.update(changed)
        return "limits changed"
    }
}

/// Changes the rate limit of all tasks, or of a barrel's members, in bytes a second. It applies until it is changed. Nil or 0
/// means no limit. With `daily`, the limit of all tasks applies in these windows alone, and the others stay. `windows` replaces all
/// windows, each with its own limit, and the rate applies at the other times.
package struct SetRateLimit: PromptRequest {
    package static let kind = "limit"
    let rate: Int64?
    let barrel: String?
    let daily: [DailyWindow]?
    let windows: [DailyWindow]?

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        if let windows { return try engine.limits.set(StandingLimit(rate: rate, daily: windows)) }
        return try engine.limits.set(rate, barrel: barrel, daily: daily ?? [])
    }
}

/// Asks for the limits in force.
package struct AskLimits: PromptRequest {
    package static let kind = "limits"

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> LimitsReport {
        try engine.limits.report()
    }
}

/// Adds a program to the middlewares of the work path.
package struct AddProgram: PromptRequest {
    package static let kind = "addProgram"
    let program: MiddlewareProgram

    private enum CodingKeys: String, CodingKey { case program = "_0" }

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.programs.add(program)
    }
}

/// Removes a program from the middlewares of the work path.
package struct RemoveProgram: PromptRequest {
    package static let kind = "removeProgram"
    let name: String

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.programs.remove(named: name)
    }
}

/// Lets the programs run that came with a work path from elsewhere.
package struct TrustPrograms: PromptRequest {
    package static let kind = "trustPrograms"

    package func perform(at engine: isolated any RequestHost, group: Int32?) throws -> String {
        try engine.programs.trust()
    }
}

/// Writes changes of tasks for the follower that asks (`ChangeJournal`).
package struct FollowChanges: PromptRequest {
    package static let kind = "follow"

    package func perform(at engine: isolated any RequestHost, group: Int32?) -> String {
        engine.openChanges()
        return "changes are written"
    }
}
