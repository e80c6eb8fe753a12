// What nearly every test needs, so that its file imports TestSupport alone.
@_exported import FKCore
@_exported import FKMiddleware
@_exported import Foundation

#if canImport(FoundationNetworking)
    @_exported import FoundationNetworking
#endif
