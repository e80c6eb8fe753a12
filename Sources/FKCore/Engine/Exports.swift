// The types of its interface, so that who imports this target can name them. FKStore has no public ones.
@_exported import FKModel
@_exported import FKStore
@_exported import FKTransport
