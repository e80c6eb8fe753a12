import FKCore
import FKMiddleware

/// The secrets of a command line and of the environment, which no message shows, whatever it is about.
enum CommandSecrets {
    /// Variables that are a secret as a whole.
    private static let tokens = [
        "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "ZENODO_TOKEN", "GH_TOKEN",
        "GITHUB_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN", "AZURE_STORAGE_SAS_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    ]
    private static let proxies = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]

    /// The values, also those of words that cannot be parsed: the options are not known yet.
    static func values(of words: [String], _ environment: [String: String]) -> Set<String> {
        var values: Set<String> = []
        var option: Substring?
        for word in words {
            if let name = option.drain() {
                values.formUnion(Self.values(of: word, option: name))
            } else if word.hasPrefix("--") {
                let name = word.dropFirst(2).prefix { $0 != "=" }
                if name.endIndex < word.endIndex {
                    values.formUnion(Self.values(of: String(word[word.index(after: name.endIndex)...]), option: name))
                } else {
                    option = name
                }
            } else if word.hasPrefix("-H") {
                if word.count == 2 { option = "header" } else { values.formUnion(header(String(word.dropFirst(2)))) }
            } else {
                values.formUnion(SecretBook.values(ofURL: word))
            }
        }
        for name in tokens { environment[name].map { _ = values.insert($0) } }
        for name in proxies { environment[name].map { values.formUnion(SecretBook.values(ofProxy: $0)) } }
        return values
    }

    /// The values of an option. The word after a flag is read as any other.
    private static func values(of text: String, option: Substring) -> Set<String> {
        switch option {
        case "header": header(text)
        case "user": text.contains(":") ? SecretBook.values(ofLogin: text[...]) : []
        case "proxy": SecretBook.values(ofProxy: text)
        default: SecretBook.values(ofURL: text)
        }
    }

    private static func header(_ text: String) -> Set<String> {
        guard let field = try? HeaderField.parse(text) else { return [] }
        return HeaderField.secretValues(of: [field], marked: [])
    }
}

extension Optional {
    /// The value, which is nil from now on.
    fileprivate mutating func drain() -> Wrapped? {
        defer { self = nil }
        return self
    }
}
