@_exported import struct FKEngine.MiddlewareProgram
