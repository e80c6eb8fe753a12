/// The types of its interface, so that who imports this target can name them.
@_exported import FKModel

@_exported import struct FKMiddleware.Checksum
