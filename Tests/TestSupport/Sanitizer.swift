import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Whether these tests, and with them `fk`, were built with a sanitizer. Its runtime does not bear everything that `fk`
/// has to: a library that replaces calls before it does, or a limit on the size of files, which its own files meet first.
package enum Sanitizer {
    package static let isActive: Bool = {
        let program = dlopen(nil, RTLD_NOW)
        return ["__tsan_init", "__asan_init"].contains { (name: String) in dlsym(program, name) != nil }
    }()
    package static let reason = "the sanitizer's runtime does not bear it"
}
