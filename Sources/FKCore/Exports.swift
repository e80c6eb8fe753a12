// A program that imports FKCore alone can name the types of its interface. What only the writer of a transport or of a middleware program
// needs is in the products FKTransport and FKPrograms, and lists are FKManifests.
@_exported import FKModel

@_exported import enum FKEngine.BarrelState
@_exported import struct FKEngine.Configure
@_exported import struct FKEngine.DownloadRecord
@_exported import enum FKEngine.DownloaderRole
@_exported import enum FKEngine.EngineOwner
@_exported import struct FKEngine.HostPolicy
@_exported import struct FKEngine.PublishedFiles
@_exported import enum FKEngine.QueueOrder
@_exported import struct FKEngine.RecordPage
@_exported import struct FKEngine.RecordQuery
@_exported import struct FKEngine.RefreshedFile
@_exported import struct FKEngine.RequestRate
@_exported import enum FKEngine.TrimOrder
@_exported import struct FKEngine.TrimmedFiles
@_exported import enum FKEngine.Verb
@_exported import struct FKEngine.VerbResult
@_exported import struct FKEngine.VerifiedFile
@_exported import struct FKMiddleware.ByteCount
@_exported import struct FKMiddleware.Checksum
@_exported import struct FKMiddleware.DownloadError
@_exported import enum FKMiddleware.DownloadState
@_exported import struct FKMiddleware.FileSignature
@_exported import struct FKMiddleware.HeaderField
@_exported import class FKMiddleware.MiddlewareChains
@_exported import struct FKTransport.BackgroundSession
@_exported import struct FKTransport.Networks
@_exported import enum FKTransport.TransportKind
