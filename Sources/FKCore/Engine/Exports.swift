// The types of its interface, so that importers of this target can name them. FKStore has no public ones.
@_exported import FKModel
@_exported import FKStore
@_exported import FKTransport
