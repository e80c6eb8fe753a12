/// The version of the project: what `fk --version` prints and servers see as `User-Agent`.
package enum Version {
    package static let text = "0.1.0"
}
