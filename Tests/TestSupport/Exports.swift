// What nearly every test needs, so that its file imports TestSupport alone.
@_exported import FKCore
@_exported import FKMiddleware
@_exported import FKTesting
@_exported import Foundation

#if canImport(FoundationNetworking)
    @_exported import FoundationNetworking
#endif

// The short names of what applications get for their tests.
package typealias FakeTransport = ScriptedTransport
package typealias FakeGate = TestGate
