/// Between `Duration`, which the API uses, and seconds, which files and libraries use.
extension Duration {
    /// The duration in seconds.
    package var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// A duration of that many seconds. Values beyond 1e15, either way, are cut off there; NaN is zero.
    package init(inSeconds seconds: Double) {
        self = seconds.isNaN ? .zero : .seconds(min(max(seconds, -1e15), 1e15))
    }
}
