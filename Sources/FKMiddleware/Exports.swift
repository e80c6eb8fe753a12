// Request middlewares change a `URLRequest`. On Apple's systems Foundation has it.
#if canImport(FoundationNetworking)
    @_exported import FoundationNetworking
#endif
