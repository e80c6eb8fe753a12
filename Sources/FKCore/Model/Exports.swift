@_exported import struct FKMiddleware.TaskID
