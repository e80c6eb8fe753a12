// What nearly every test needs, so that its file imports TestSupport alone.
@_exported import FKCompatibility
@_exported import FKCore
@_exported import FKEngine
@_exported import FKMiddleware
@_exported import FKPrograms
@_exported import FKTesting
@_exported import FKTransport
@_exported import Foundation

#if canImport(FoundationNetworking)
    @_exported import FoundationNetworking
#endif
